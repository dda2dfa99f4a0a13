"""Holds slices of a device plugin's resource by the allocation's hold quota, and no other object.

Kubernetes does not name the devices, so the portal does not either. ``reconcile_project`` writes the quota; its status
is the evidence that the slices are held.

Kubernetes sometimes admits more than a quota allows: it recounts the pods when one is deleted, and misses one that is
just being created. What pods use beyond the quota also counts as held until they are terminated
(``allocations.reconcile.enforcement.lease_check``).
"""

from collections.abc import Iterator

from allocations.cluster import names
from allocations.cluster.manifests import hold_quota, lease
from allocations.domain.objects import Manifest, Ref, ResolvedSpec, Slice, Snapshot, is_on_node
from allocations.domain.observed_facts import pod_facts


def objects(request: ResolvedSpec, snapshot: Snapshot) -> list[Manifest]:
    """Return no objects: the hold quota belongs to the project."""
    return []


def leftovers(request: ResolvedSpec) -> list[list[Ref]]:
    """Return nothing to delete."""
    return []


def outdated(request: ResolvedSpec, snapshot: Snapshot) -> list[list[Ref]]:
    """Return nothing to recreate."""
    return []


def is_claim_deleted(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return False: it has no ResourceClaims."""
    return False


def claims(request: ResolvedSpec) -> list[Ref]:
    """Return no ResourceClaims."""
    return []


def requested_gpus(request: ResolvedSpec, snapshot: Snapshot) -> tuple[str, ...]:
    """Return no GPUs: a count of a resource selects none."""
    return ()


def finds_no_device(request: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return False: a count of a resource needs no scheduling."""
    return False


def held(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the held slices: those of the quota that lists the allocation, once its ``status.hard`` shows them."""
    return occupied(request, snapshot) if hold_quota.is_enforced(hold_quota.listing(request, snapshot)) else ()


def occupied(request: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the slices that the allocation occupies as long as a quota lists it, since a pod could still use them.

    The hold cannot begin before the lease was admitted, so that time is part of its identity and is its start.
    """
    quota_object = hold_quota.listing(request, snapshot)
    if quota_object is None:
        return ()
    lease_facts = lease.read(snapshot.get(lease.ref(request)))
    since = lease_facts.admitted_at if lease_facts else None
    identity = f"{request.id}/{quota_object.uid}/{since.isoformat() if since else ''}"
    reserved = Slice(slot=request.id, count=request.slices, identity=identity, since=since, evidence=quota_object.ref)
    return (reserved, *_excess(request, snapshot))


def _excess(request: ResolvedSpec, snapshot: Snapshot) -> Iterator[Slice]:
    """Yield what bound pods, including terminating ones, use beyond the allocation's slices, in a slot for each pod."""
    left = request.slices
    for pod in sorted(hold_quota.pods(request, snapshot), key=lambda pod: pod.uid):
        facts = pod_facts(pod)
        amount = facts.get("gpus", {}).get(request.resource, 0)
        if amount and is_on_node(facts):
            excess, left = max(0, amount - left), max(0, left - amount)
            if excess:
                slot = f"{request.id}/pod:{pod.uid}/{excess}"
                yield Slice(slot=slot, count=excess, identity=pod.uid, evidence=pod.ref)


def blocked_by(request: ResolvedSpec, snapshot: Snapshot) -> str:
    """Return "": a quota is never blocked. Kueue's waitForPodsReady evicts an allocation whose quota is late."""
    return ""


def guard_entry(request: ResolvedSpec) -> dict[str, object]:
    """Return the allocation's entry in its GpuProject, which the admission policies apply to its pods."""
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
    """Return no annotations: the label alone gives a pod its slices, on any node."""
    return {}


def quota(request: ResolvedSpec) -> dict[str, int]:
    """Return the slices in the allocation's hold quota, by resource."""
    return {request.resource: request.slices}
