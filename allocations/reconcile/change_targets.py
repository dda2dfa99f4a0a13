"""Finds the targets to reconcile after a change of the mirror, besides the allocations that the change concerns."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from allocations.cluster.kinds import INVENTORY, Kind
from allocations.domain.objects import Ref, is_on_node
from allocations.models import Allocation, AppliedObject
from allocations.reconcile.mirror_change import Change
from portal.workqueue import targets
from portal.workqueue.targets import Target


def applied_object_targets(cluster: str, changes: Iterable[Change]) -> set[Target]:
    """Return the targets whose applied objects someone else deleted or edited."""
    latest = {c.new.ref: c.new for c in changes}
    kinds, names = {r.kind for r in latest}, {r.name for r in latest}
    rows = AppliedObject.objects.filter(cluster=cluster, kind__in=kinds, name__in=names)
    return {
        Target(row.target)
        for row in rows
        if (new := latest.get(Ref(row.kind, row.namespace, row.name)))
        and new.resource_version >= row.resource_version
        and (new.gone or new.deleting or (new.uid, new.digest) != (row.uid, row.digest))
    }


def missing_object_targets(cluster: str, kind: Kind, listed: Container[Ref], resource_version: int) -> set[Target]:
    """Return the targets whose applied objects are missing in a list at this revision.

    An object may have been deleted before any watch or list observed it.
    """
    applied = AppliedObject.objects.filter(cluster=cluster, kind=kind.name, resource_version__lte=resource_version)
    rows = applied.values_list("target", "kind", "namespace", "name").iterator()
    return {Target(target) for target, *ref in rows if Ref(*ref) not in listed}


def inventory_targets(cluster: str, change: Change) -> set[Target]:
    """Return the inventory target if the change concerns nodes, devices, or their use without an allocation."""
    new = change.new
    facts = new.facts or (change.old.facts if change.old else {})  # an object that a list lacks has no facts
    is_use = not new.allocation and (new.ref.kind == "ResourceClaim" or facts.get("gpus"))
    is_relevant = new.ref.kind in INVENTORY or is_use or (not new.allocation and _requests_differ(change))
    return {targets.inventory(cluster)} if is_relevant else set()


def _requests_differ(change: Change) -> bool:
    """Return whether a pod requests more or less of a node than before."""
    old, new = change.old.facts if change.old else {}, {} if change.new.gone else change.new.facts or {}
    return change.new.ref.kind == "Pod" and _node_requests(old) != _node_requests(new)


def _node_requests(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(pod.get(name) for name in ("node", "cpu_millicores", "memory_mib")) if is_on_node(pod) else ()


def adoption_targets(cluster: str, change: Change, holders: Mapping[tuple[str, str], Allocation]) -> set[Target]:
    """Return the adoption target if a lease of the portal has no row: the database was restored from a backup."""
    new = change.new
    is_lease = new.ref.kind == "Workload" and bool(new.allocation) and not new.gone
    has_row = (new.ref.namespace, new.allocation) in holders
    return {targets.adoption(cluster)} if is_lease and not has_row else set()
