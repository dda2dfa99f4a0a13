"""Finds the targets to reconcile after a change of the mirror, besides the allocations that the change concerns."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from allocations.cluster.kinds import INVENTORY, Kind
from allocations.domain.allocation_spec import LeaseRecord
from allocations.domain.objects import Ref, is_on_node
from allocations.domain.observed_facts import PodFacts, WorkloadFacts, claim_facts, pod_facts, workload_facts
from allocations.models import Allocation, AppliedObject
from allocations.reconcile import mirror
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.mirror_change import Change
from allocations.reconcile.recorder import Recorder, Seen
from portal.workqueue import targets
from portal.workqueue.targets import Target


def is_own_write(change: Change, applied: Mapping[Ref, AppliedObject]) -> bool:
    """Return whether the change is what a reconcile wrote itself, and knows already."""
    new, status = change.new, change.new.ref._replace(kind=f"{change.new.ref.kind}/status")
    records = [record for ref in (new.ref, status) if (record := applied.get(ref))]
    return new.live and not new.gone and any(record.resource_version == new.resource_version for record in records)


def applied_object_targets(changes: Iterable[Change], applied: Mapping[Ref, AppliedObject]) -> set[Target]:
    """Return the targets whose applied objects someone else deleted or edited."""
    latest = {c.new.ref: c.new for c in changes}
    return {
        Target(row.target)
        for ref, new in latest.items()
        if (row := applied.get(ref))
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


def inventory_targets(cluster: str, changes: Iterable[Change]) -> set[Target]:
    """Return the inventory target if a change concerns nodes or devices."""
    return {targets.inventory(cluster)} if any(c.new.ref.kind in INVENTORY for c in changes) else set()


def nodes_with_other_use(cluster: str, changes: Iterable[Change]) -> set[str]:
    """Return the nodes of which the changes show that pods and claims without an allocation use more or less than
    before. One query for the Jobs that have just got quota: what their pods use is charged from now on.
    """
    changes = list(changes)
    nodes = {node for change in changes if _is_foreign_use(change) for node in _nodes(change)}
    if admitted := [workload_facts(change.new)["job"]["uid"] for change in changes if job_targets(cluster, change)]:
        nodes |= mirror.nodes_of_jobs(cluster, admitted)
    return nodes


def _is_foreign_use(change: Change) -> bool:
    """Return whether the change concerns the use of nodes or devices without an allocation."""
    new = change.new
    facts = pod_facts(new if new.facts else change.old)  # an object that a list lacks has no facts
    is_use = new.ref.kind == "ResourceClaim" or facts.get("gpus") or _requests_differ(change)
    return (not new.allocation or change.is_relabelled) and bool(is_use)


def _nodes(change: Change) -> set[str]:
    """Return the nodes that a pod or a claim uses, before and after the change."""
    forms = [form for form in (change.old, None if change.new.gone else change.new) if form is not None]
    if change.new.ref.kind == "ResourceClaim":
        return {device["pool"] for form in forms for device in claim_facts(form).get("devices", ())}
    return {pod_facts(form).get("node", "") for form in forms} - {""}


def _requests_differ(change: Change) -> bool:
    """Return whether a pod requests more or less of a node than before."""
    old, new = pod_facts(change.old), pod_facts(None if change.new.gone else change.new)
    return change.new.ref.kind == "Pod" and _node_requests(old) != _node_requests(new)


def _node_requests(pod: PodFacts) -> tuple[object, ...]:
    return (pod.get("node"), pod.get("cpu_millicores"), pod.get("memory_mib")) if is_on_node(pod) else ()


def job_targets(cluster: str, change: Change) -> set[Target]:
    """Return the target of a tenant's Job that has just got quota, whose people get an Event with its GPUs."""
    facts = workload_facts(change.new)
    admitted = _admitted_quota(facts)
    is_new = admitted is not None and admitted != _admitted_quota(workload_facts(change.old))
    return {targets.job(cluster, facts["job"]["uid"])} if is_new else set()


def _admitted_quota(facts: WorkloadFacts) -> tuple[list[str], int | None] | None:
    """Return the flavors and the number of pods that a queued Job has quota for; None without any."""
    if not facts.get("job") or not facts.get("cluster_queue") or not facts.get("usage"):
        return None
    return sorted(facts["usage"]), facts.get("pods", {}).get("admitted")


def adoption_targets(cluster: str, change: Change, holders: Mapping[tuple[str, str], Allocation]) -> set[Target]:
    """Return the adoption target if a lease of the portal has no row: the database was restored from a backup."""
    new = change.new
    if new.ref.kind != "Workload" or not new.allocation or new.gone:
        return set()
    row = holders.get((new.ref.namespace, new.allocation))
    if row is None:
        return {targets.adoption(cluster)}
    # A lease may be of a later allocation with the name of one that has ended.
    is_lost = row.ended_at is not None and LeaseRecord.is_of_another(workload_facts(new).get("record", ""), row.pk)
    return {targets.adoption(cluster)} if is_lost else set()


def _each(batch: BatchState, seen: Seen) -> Collection[Target]:
    change = seen.change
    return job_targets(batch.cluster, change) | adoption_targets(batch.cluster, change, batch.holders)


def _batch(batch: BatchState, seen: Sequence[Seen]) -> Collection[Target]:
    changes = [one.change for one in seen]
    return inventory_targets(batch.cluster, changes) | applied_object_targets(changes, batch.applied)


RECORDER = Recorder(each=_each, batch=_batch)
