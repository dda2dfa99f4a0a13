"""Performs the actions of a plan, and records the API server's answers."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db.models import QuerySet

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.kinds import KINDS, is_ours, our_fields
from allocations.domain.actions import Action, Apply, Delete, ReleaseReservation, SetPodsReady, digest
from allocations.domain.objects import Applied, Manifest, Ref
from allocations.models import AppliedObject
from allocations.reconcile.engine.plan import DELETED
from portal.core import clock
from portal.workqueue.targets import Target

log = structlog.get_logger(__name__)
GONE_AT_ONCE = frozenset({"PriorityClass"})
"""Kinds of which nothing waits for an object's end, so that another can be made in the same moment."""
RECREATE_KINDS = frozenset({"ResourceClaim", "Pod", "Workload", "LocalQueue"}) | GONE_AT_ONCE
"""Kinds whose specs (a LocalQueue's ClusterQueue, a PriorityClass's value) cannot be changed in place: one that does
not take our intent is deleted and made again. What is not ours stays."""

REJECTED_STATUSES = frozenset({403, 422})
"""How a form is refused: by an admission webhook (Kueue's says 403), or by the API server itself."""


def apply(client: Client, actions: Iterable[Action], target: Target) -> int:
    """Perform ``actions`` in order; returns how many. Raises the client's errors; what was done stays recorded."""
    done = 0
    for action in actions:
        match action:
            case Apply(manifest, why):
                log.info(
                    "apply",
                    why=why,
                    kind=action.ref.kind,
                    namespace=action.ref.namespace,
                    name=action.ref.name,
                )
                _apply(client, manifest, target)
            case Delete(ref, uid):
                log.info("delete", kind=ref.kind, namespace=ref.namespace, name=ref.name)
                client.delete(ref, uid)
                _rows(client.cluster, ref).filter(uid=uid).update(intent=DELETED)
            case SetPodsReady():
                _set_pods_ready(client, action, target)
            case ReleaseReservation():
                _release_reservation(client, action)
        done += 1
    return done


def _apply(client: Client, manifest: Manifest, target: Target) -> None:
    ref = Ref.of_manifest(manifest)
    try:
        answer = client.apply(manifest)
    except ClusterRefused as error:
        live = client.get(ref) if ref.kind in RECREATE_KINDS and error.status in REJECTED_STATUSES else None
        if live and not is_ours(live):
            raise in_the_way(ref, error) from error
        if live and live.get("status", {}).get("admission"):
            # Kueue keeps the form of what it admitted, and what is held is not given up for a better one.
            _remember(client.cluster, ref, live, digest(manifest), our_fields(live), target)
            return
        if not live or error.status != 422:
            raise
        client.delete(ref, live["metadata"]["uid"])
        if ref.kind not in GONE_AT_ONCE:
            raise ClusterUnavailable(
                f"{ref.kind} {ref.name} does not take our form and is made again: {error}"
            ) from error
        answer = client.apply(manifest)
    # Another digest of our managedFields entry in the watch will mean that someone edited what we own.
    _remember(client.cluster, ref, answer, digest(manifest), our_fields(answer), target)


def in_the_way(ref: Ref, error: ClusterRefused) -> ClusterRefused:
    """The API server's refusal, saying that somebody else's object has the name."""
    where = f" in {ref.namespace}" if ref.namespace else ""
    message = (
        f"A {ref.kind} named {ref.name}{where} is in the way: it is not the portal's, so it is left as it is. "
        f"Delete it or give it another name; the portal then creates its own. The API server said: {error.message}"
    )
    return ClusterRefused(error.status, error.reason, message, error.causes)


def _remember(cluster: str, ref: Ref, answer: dict[str, Any], intent: str, fields: str, target: Target) -> None:
    row = AppliedObject(
        cluster_id=cluster,
        kind=ref.kind,
        namespace=ref.namespace,
        name=ref.name,
        target=target,
        uid=answer["metadata"]["uid"],
        resource_version=int(answer["metadata"]["resourceVersion"]),
        intent=intent,
        digest=fields,
        applied_at=clock.now(),
    )
    AppliedObject.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["cluster", "kind", "namespace", "name"],
        update_fields=["target", "uid", "resource_version", "intent", "digest", "applied_at"],
    )


def applied(target: Target) -> dict[Ref, Applied]:
    rows = AppliedObject.objects.filter(target=target)
    return {
        ref: Applied(ref, row.uid, row.resource_version, row.intent, row.digest)
        for row in rows
        for ref in (Ref(row.kind, row.namespace, row.name),)
    }


def forget(cluster: str, refs: Iterable[Ref]) -> None:
    for ref in refs:
        _rows(cluster, ref).delete()


def _rows(cluster: str, ref: Ref) -> QuerySet[AppliedObject]:
    return AppliedObject.objects.filter(cluster=cluster, kind=ref.kind, namespace=ref.namespace, name=ref.name)


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _set_pods_ready(client: Client, action: SetPodsReady, target: Target) -> None:
    """Status by server-side apply with our one condition: ``conditions`` is a list-map, so Kueue's stay its own."""
    answer = client.apply(
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
    _remember(client.cluster, ref, answer, "", "", target)


def _release_reservation(client: Client, action: ReleaseReservation) -> None:
    """Clear ``status.admission`` of an evicted workload, as Kueue's own job integrations do when their pods are gone.

    PUT with the object's resourceVersion: a conflict is answered 409 and tried again by the next pass.
    """
    live = client.get(action.ref)
    if live is None or not live.get("status", {}).get("admission"):
        return
    status = live["status"]
    status.pop("admission")
    at = _timestamp(clock.now())
    ours = {
        "QuotaReserved": ("False", "Pending", action.message),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
        "PodsReady": ("False", "NotHeld", "The slices were taken back"),
        "Requeued": ("True", action.reason, action.message),
    }
    kept = [c for c in status.get("conditions", ()) if c["type"] not in ours]
    status["conditions"] = kept + [
        {
            "type": type_,
            "status": value,
            "reason": reason,
            "message": message[:1000],
            "lastTransitionTime": at,
        }
        for type_, (value, reason, message) in ours.items()
    ]
    path = KINDS[action.ref.kind].path(action.ref.namespace, action.ref.name, "status")
    client.json("PUT", path, query={"fieldManager": "gpu-portal-eviction"}, body=live)
