"""Holds slices of a device plugin's resource by the allocation's hold quota, and no other object.

Kubernetes does not name the devices, so the portal does not either. ``reconcile_project`` writes the quota; its status
is the evidence that the slices are held.

Kubernetes sometimes admits more than a quota allows: it recounts the pods when one is deleted, and misses one that is
just being created. What pods use beyond the quota also counts as held until they are terminated
(``allocations.reconcile.enforcement.lease_check``).
"""

from collections.abc import Iterator
from datetime import datetime

from allocations.cluster import names
from allocations.cluster.manifests import hold_quota, lease
from allocations.domain.objects import Manifest, Ref, ResolvedSpec, Slice, Snapshot, is_on_node
from allocations.domain.observed_facts import pod_facts, quota_facts


def objects(spec: ResolvedSpec, snapshot: Snapshot) -> list[Manifest]:
    """Return no objects: the hold quota belongs to the project."""
    return []


def leftovers(spec: ResolvedSpec) -> list[list[Ref]]:
    """Return nothing to delete."""
    return []


def outdated(spec: ResolvedSpec, snapshot: Snapshot) -> list[list[Ref]]:
    """Return nothing to recreate."""
    return []


def is_claim_deleted(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return False: it has no ResourceClaims."""
    return False


def claims(spec: ResolvedSpec) -> list[Ref]:
    """Return no ResourceClaims."""
    return []


def requested_gpus(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[str, ...]:
    """Return no GPUs: a count of a resource selects none."""
    return ()


def finds_no_device(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return False: a count of a resource needs no scheduling."""
    return False


def held(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the held slices: those of the quota that lists the allocation, once its ``status.hard`` shows them."""
    return occupied(spec, snapshot) if hold_quota.is_enforced(hold_quota.listing(spec, snapshot)) else ()


def occupied(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the slices that the allocation occupies as long as a quota lists it, since a pod could still use them.

    The hold cannot begin before the lease was admitted, so that time is part of its identity and is its start.
    """
    quota_object = hold_quota.listing(spec, snapshot)
    if quota_object is None:
        return ()
    lease_facts = lease.read(snapshot.get(lease.ref(spec)))
    since = lease_facts.admitted_at if lease_facts else None
    identity = f"{spec.id}/{quota_object.uid}/{since.isoformat() if since else ''}"
    shown_at = quota_facts(quota_object).get("shown_at")
    reserved = Slice(
        slot=spec.id,
        count=spec.slices,
        identity=identity,
        since=since,
        confirmed_at=datetime.fromisoformat(shown_at) if shown_at else None,
        evidence=quota_object.ref,
    )
    return (reserved, *_excess(spec, snapshot))


def _excess(spec: ResolvedSpec, snapshot: Snapshot) -> Iterator[Slice]:
    """Yield what bound pods, including terminating ones, use beyond the allocation's slices, in a slot for each pod."""
    left = spec.slices
    for pod in sorted(hold_quota.pods(spec, snapshot), key=lambda pod: pod.uid):
        facts = pod_facts(pod)
        amount = facts.get("gpus", {}).get(spec.resource, 0)
        if amount and is_on_node(facts):
            excess, left = max(0, amount - left), max(0, left - amount)
            if excess:
                slot = f"{spec.id}/pod:{pod.uid}/{excess}"
                yield Slice(slot=slot, count=excess, identity=pod.uid, evidence=pod.ref)


def blocked_by(spec: ResolvedSpec, snapshot: Snapshot) -> str:
    """Return "": a quota is never blocked. Kueue's waitForPodsReady evicts an allocation whose quota is late."""
    return ""


def guard_entry(spec: ResolvedSpec) -> dict[str, object]:
    """Return the allocation's entry in its GpuProject, which the admission policies apply to its pods."""
    return {
        "mode": "device-plugin",
        "resource": spec.resource,
        "count": spec.count,
        **({"shared": True} if spec.is_shared else {}),
        **({"share": spec.slice_share.amounts} if spec.node_share else {}),
        "priorityClassName": names.hold_slot(spec.number),
        "nodeSelector": dict(spec.node_selector),
        "tolerations": [dict(t) for t in spec.tolerations],
    }


def annotations(spec: ResolvedSpec) -> dict[str, str]:
    """Return no annotations: the label alone gives a pod its slices, on any node."""
    return {}


def quota(spec: ResolvedSpec) -> dict[str, int]:
    """Return the slices in the allocation's hold quota, by resource."""
    return {spec.resource: spec.slices}
