"""Removes the objects of an archived project after its last allocation has ended.

1. Role bindings are deleted, so that people lose access.
2. Queued Jobs are deleted, since they use the project's quota.
3. A namespace that the portal created is deleted with its content. An adopted one is handed back to its owners: the
   portal's objects are deleted, the guard's parameters last, and then the portal's labels are removed.
"""

from datetime import datetime, timedelta

from allocations.cluster import namespaces
from allocations.cluster.client import Client
from allocations.cluster.kinds import KINDS, OURS
from allocations.cluster.manifests.project import labels_left_behind, without_portal_fields
from allocations.cluster.names import GUARD, LEFT_BEHIND
from allocations.domain.actions import DesiredState, is_gone, nothing_left
from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.domain.observed_facts import namespace_facts
from allocations.reconcile import mirror
from allocations.reconcile.engine.applied import applied_objects, forget
from allocations.reconcile.engine.apply import apply
from allocations.reconcile.engine.plan import plan
from portal.core import clock
from portal.tenants.models import Project
from portal.workqueue.targets import Target

RECHECK_AFTER = timedelta(seconds=5)
REMOVED_LAST = ("GpuProject", "Namespace")


def tear_down(project: Project, target: Target, client: Client) -> datetime | None:
    """Perform the next step of the removal; return when to continue, or None if nothing is left.

    Objects that a restore of etcd brought back are removed again.
    """
    snapshot = mirror.of_project(client.cluster, project.namespace)
    applied = applied_objects(target) or _restored_objects(project, snapshot)
    if not applied:
        return None
    role_bindings = [ref for ref in applied if ref.kind == "RoleBinding"]
    apply(client, plan(DesiredState(unwanted=[role_bindings]), snapshot, applied), target)
    if not nothing_left(role_bindings, snapshot, applied):
        return clock.now() + RECHECK_AFTER
    if _end_jobs(project, snapshot, client):
        return clock.now() + RECHECK_AFTER
    remove = _hand_back if project.adopted else _delete
    if remove(project, target, snapshot, applied, client):
        return clock.now() + RECHECK_AFTER
    forget(client.cluster, applied)
    return None


def _restored_objects(project: Project, snapshot: Snapshot) -> dict[Ref, Applied]:
    """Return the portal's objects in the namespace from the mirror, as if they had just been applied.

    Empty if the namespace (if adopted: the GpuProject) was created after the archiving: the project may be in use again
    and its row restored from a backup. An adopted namespace with the portal's labels and no GpuProject was not handed
    back completely, since the GpuProject is created first.
    """
    namespace, guard = snapshot.get(_namespace(project)), Ref("GpuProject", project.namespace, GUARD)
    if namespace is None or project.archived_at is None:
        return {}
    is_guard_gone = snapshot.is_gone(Applied(guard, "", namespace.resource_version, "", ""))
    oldest = namespace if is_guard_gone or not project.adopted else snapshot.get(guard)
    created_at = namespace_facts(oldest).get("created_at")  # a GpuProject has the same field
    if not created_at or datetime.fromisoformat(created_at) > project.archived_at:
        return {}
    observed = [one for one in snapshot if KINDS[one.ref.kind].selector == OURS and not one.allocation]
    return {one.ref: Applied(one.ref, one.uid, 0, "", one.digest) for one in observed}


def _delete(project: Project, target: Target, snapshot: Snapshot, applied: dict[Ref, Applied], client: Client) -> bool:
    """Delete the namespace; return whether it still exists."""
    namespace = _namespace(project)
    apply(client, plan(DesiredState(unwanted=[[namespace]]), snapshot, applied), target)
    return not is_gone(namespace, snapshot, applied.get(namespace))


def _end_jobs(project: Project, snapshot: Snapshot, client: Client) -> bool:
    """Delete the queued Jobs of the namespace, unless it is being deleted; return whether there were any."""
    observed = snapshot.get(_namespace(project))
    if observed is None or observed.deleting:
        return False
    jobs = namespaces.queued_jobs(client, project.namespace)
    for job in jobs:
        namespaces.end_job(client, project.namespace, job)
    return bool(jobs)


def _hand_back(
    project: Project, target: Target, snapshot: Snapshot, applied: dict[Ref, Applied], client: Client
) -> bool:
    """Delete the portal's objects, then remove its labels from the namespace; return whether objects are left."""
    ours = [ref for ref in applied if ref.kind not in REMOVED_LAST]
    guard = [ref for ref in applied if ref.kind == "GpuProject"]
    apply(client, plan(DesiredState(unwanted=[ours, guard]), snapshot, applied), target)
    if not nothing_left([*ours, *guard], snapshot, applied):
        return True
    if snapshot.get(_namespace(project)) is not None:
        client.apply(labels_left_behind(project.namespace, project.pod_security, project.guard), manager=LEFT_BEHIND)
        client.apply(without_portal_fields(project.namespace))
    return False


def _namespace(project: Project) -> Ref:
    return Ref("Namespace", "", project.namespace)
