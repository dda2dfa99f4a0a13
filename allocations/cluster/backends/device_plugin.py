"""Slices held by the device plugin: a count in the allocation's hold quota, and nothing else.

Kubernetes names no device here, so neither does the portal. The quota is written by ``reconcile_project``; its own
status is the evidence that the slices are held.

Now and then Kubernetes lets in more than a quota has: it adds its pods up anew whenever one is gone, and overlooks one
that is just being made. What pods have beyond the quota is held too, until it is ended
(``allocations.reconcile.enforcement.lease_check``).
"""

from collections.abc import Iterator

from allocations.cluster import names
from allocations.cluster.manifests import hold_quota, lease
from allocations.domain.objects import Manifest, Ref, ResolvedSpec, Slice, Snapshot, is_on_node


def objects(request: ResolvedSpec, snapshot: Snapshot) -> list[Manifest]:
    return []


def leftovers(request: ResolvedSpec) -> list[list[Ref]]:
    return []


def outdated(request: ResolvedSpec, snapshot: Snapshot) -> list[list[Ref]]:
    return []


def is_claim_deleted(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    return False


def claims(request: ResolvedSpec) -> list[Ref]:
    return []


def requested_cards(request: ResolvedSpec, snapshot: Snapshot) -> tuple[str, ...]:
    return ()


def finds_no_device(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    return False


def held(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Held = the quota lists the allocation, and its ``status.hard`` has shown the slices since."""
    return occupied(request, snapshot) if hold_quota.has_followed(hold_quota.listing(request, snapshot)) else ()


def occupied(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """As long as a quota lists the allocation, a pod of it could be let in: charged until none does.

    The hold began no earlier than its admission, so that is the hold's identity and its earliest beginning.
    """
    seen = hold_quota.listing(request, snapshot)
    if seen is None:
        return ()
    admitted = lease.read(snapshot.get(lease.ref(request)))
    since = admitted.admitted_at if admitted else None
    identity = f"{request.id}/{seen.uid}/{since.isoformat() if since else ''}"
    reserved = Slice(slot=request.id, count=request.slices, identity=identity, since=since, evidence=seen.ref)
    return (reserved, *_beyond(request, snapshot))


def _beyond(request: ResolvedSpec, snapshot: Snapshot) -> Iterator[Slice]:
    """What bound pods have beyond the count, ending ones too: each pod's part in a slot of its own."""
    left = request.slices
    for pod in sorted(hold_quota.pods(request, snapshot), key=lambda pod: pod.uid):
        amount = pod.facts.get("gpus", {}).get(request.resource, 0)
        if amount and is_on_node(pod.facts):
            beyond, left = max(0, amount - left), max(0, left - amount)
            if beyond:
                slot = f"{request.id}/pod:{pod.uid}/{beyond}"
                yield Slice(slot=slot, count=beyond, identity=pod.uid, evidence=pod.ref)


def blocked_by(request: ResolvedSpec, snapshot: Snapshot) -> str:
    """Nothing can be: a quota is given or late. Kueue's own waitForPodsReady takes back what stays late."""
    return ""


def guard_entry(request: ResolvedSpec) -> dict[str, object]:
    return {
        "mode": "device-plugin",
        "resource": request.resource,
        "count": request.count,
        **({"shared": True} if request.is_shared else {}),
        **({"share": request.slice_share.amounts} if request.node_share else {}),
        "priorityClassName": names.hold_slot(request.number),
        "nodeSelector": dict(request.node_selector),
        "tolerations": [dict(t) for t in request.tolerations],
    }


def annotations(request: ResolvedSpec) -> dict[str, str]:
    """The label alone gives a pod the count; pods on several nodes may share it, with ``spread`` and without."""
    return {}


def quota(request: ResolvedSpec) -> dict[str, int]:
    """Slices by resource that its hold quota has."""
    return {request.resource: request.slices}
