"""Performs the actions of a plan, and records the API server's responses."""

from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.kinds import KINDS, is_ours, our_fields
from allocations.domain.actions import Action, Apply, Delete, ReleaseReservation, SetPodsReady, digest
from allocations.domain.objects import Manifest, Ref
from allocations.reconcile.engine.applied import record_applied, record_deleted
from portal.core import clock
from portal.workqueue.targets import Target

log = structlog.get_logger(__name__)
NO_FINALIZER_KINDS = frozenset({"PriorityClass"})
"""Kinds without finalizers: a deleted object can be created again at once."""
RECREATE_KINDS = frozenset({"ResourceClaim", "Pod", "Workload", "LocalQueue"}) | NO_FINALIZER_KINDS
"""Kinds with immutable fields (a LocalQueue's ClusterQueue, a PriorityClass's value): an object of the portal that does
not accept the desired form is deleted and created again.
"""

REJECTED_STATUSES = frozenset({403, 422})
"""HTTP statuses of a refused form: 403 from an admission webhook (Kueue's), 422 from the API server."""


def apply(client: Client, actions: Iterable[Action], target: Target) -> int:
    """Perform ``actions`` in order; return how many.

    Raises ClusterUnavailable, ClusterRefused; actions before the failed one stay recorded.
    """
    count = 0
    for action in actions:
        match action:
            case Apply(manifest, reason):
                log.info(
                    "apply",
                    reason=reason,
                    kind=action.ref.kind,
                    namespace=action.ref.namespace,
                    name=action.ref.name,
                )
                _apply(client, manifest, target)
            case Delete(ref, uid):
                log.info("delete", kind=ref.kind, namespace=ref.namespace, name=ref.name)
                client.delete(ref, uid)
                record_deleted(client.cluster, ref, uid)
            case SetPodsReady():
                _set_pods_ready(client, action, target)
            case ReleaseReservation():
                _release_reservation(client, action)
        count += 1
    return count


def _apply(client: Client, manifest: Manifest, target: Target) -> None:
    ref = Ref.of_manifest(manifest)
    try:
        response = client.apply(manifest)
    except ClusterRefused as error:
        live = client.get(ref) if ref.kind in RECREATE_KINDS and error.status in REJECTED_STATUSES else None
        if live and not is_ours(live):
            raise name_conflict(ref, error) from error
        if live and live.get("status", {}).get("admission"):
            # Kueue refuses changes to an admitted Workload, and a hold is not released for a newer form of its lease.
            record_applied(client.cluster, ref, live, digest(manifest), our_fields(live), target)
            return
        if not live or error.status != 422:
            raise
        client.delete(ref, live["metadata"]["uid"])
        if ref.kind not in NO_FINALIZER_KINDS:
            raise ClusterUnavailable(
                f"{ref.kind} {ref.name} refuses the desired form and is created again: {error}"
            ) from error
        response = client.apply(manifest)
    # If the watch shows another digest of the portal's managedFields entry, someone edited its fields.
    record_applied(client.cluster, ref, response, digest(manifest), our_fields(response), target)


def name_conflict(ref: Ref, error: ClusterRefused) -> ClusterRefused:
    """Return the API server's refusal with a message that an object of someone else has the name."""
    where = f" in {ref.namespace}" if ref.namespace else ""
    message = (
        f"A {ref.kind} named {ref.name}{where} is in the way: it is not the portal's, so it is left as it is. "
        f"Delete it or give it another name; the portal then creates its own. The API server said: {error.message}"
    )
    return ClusterRefused(error.status, error.reason, message, error.causes)


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _set_pods_ready(client: Client, action: SetPodsReady, target: Target) -> None:
    """Set the PodsReady condition by server-side apply. ``conditions`` is a list-map, so Kueue keeps its own."""
    response = client.apply(
        {
            "apiVersion": KINDS[action.ref.kind].api_version,
            "kind": action.ref.kind,
            "metadata": {"name": action.ref.name, "namespace": action.ref.namespace},
            "status": {
                "conditions": [
                    {
                        "type": "PodsReady",
                        "status": "True" if action.ready else "False",
                        "reason": "Held" if action.ready else "NotHeld",
                        "message": action.message,
                        "lastTransitionTime": _timestamp(clock.now()),
                    }
                ]
            },
        },
        subresource="status",
    )
    ref = Ref(f"{action.ref.kind}/status", action.ref.namespace, action.ref.name)
    record_applied(client.cluster, ref, response, "", "", target)


def _release_reservation(client: Client, action: ReleaseReservation) -> None:
    """Clear ``status.admission`` of an evicted Workload, as Kueue's job integrations do when the pods are gone.

    The PUT has the object's resourceVersion: on a conflict (409) the next reconcile tries again.
    """
    live = client.get(action.ref)
    if live is None or not live.get("status", {}).get("admission"):
        return
    status = live["status"]
    status.pop("admission")
    at = _timestamp(clock.now())
    conditions = {
        "QuotaReserved": ("False", "Pending", action.message),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
        "PodsReady": ("False", "NotHeld", "The slices were taken back"),
        "Requeued": ("True", action.reason, action.message),
    }
    kept = [c for c in status.get("conditions", ()) if c["type"] not in conditions]
    status["conditions"] = kept + [
        {
            "type": type_,
            "status": value,
            "reason": reason,
            "message": message[:1000],
            "lastTransitionTime": at,
        }
        for type_, (value, reason, message) in conditions.items()
    ]
    path = KINDS[action.ref.kind].path(action.ref.namespace, action.ref.name, "status")
    client.json("PUT", path, query={"fieldManager": "gpu-portal-eviction"}, body=live)
