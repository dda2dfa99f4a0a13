"""Removes what is left of an archived project, once its last allocation has ended.

First people lose access. Then queued Jobs end, which use the project's quota. A namespace that the portal created is
deleted with its content; an adopted one loses what the portal keeps there, the guard's parameters last, and then the
portal's labels: it belongs to its owners again.
"""

from datetime import datetime, timedelta

from allocations.cluster import namespaces
from allocations.cluster.client import Client
from allocations.cluster.kinds import KINDS, OURS
from allocations.cluster.manifests.project import labels_left_behind, without_portal_fields
from allocations.cluster.names import GUARD, LEFT_BEHIND
from allocations.domain.actions import DesiredState, is_gone, nothing_left
from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.reconcile import mirror
from allocations.reconcile.engine.apply import applied, apply, forget
from allocations.reconcile.engine.plan import plan
from portal.core import clock
from portal.tenants.models import Project
from portal.workqueue.targets import Target

RECHECK_AFTER = timedelta(seconds=5)
LAST = ("GpuProject", "Namespace")


def tear_down(project: Project, target: Target, client: Client) -> datetime | None:
    """The next step towards nothing; returns when to look again, or None when nothing is left.

    What was taken down before and is there again, since etcd came back from a backup, is taken down once more."""
    snapshot = mirror.of_project(client.cluster, project.namespace)
    done = applied(target) or _brought_back(project, snapshot)
    if not done:
        return None
    ways_in = [ref for ref in done if ref.kind == "RoleBinding"]
    apply(client, plan(DesiredState(unwanted=[ways_in]), snapshot, done), target)
    if not nothing_left(ways_in, snapshot, done):
        return clock.now() + RECHECK_AFTER
    if _end_jobs(project, snapshot, client):
        return clock.now() + RECHECK_AFTER
    leave = _give_back if project.adopted else _delete
    if leave(project, target, snapshot, done, client):
        return clock.now() + RECHECK_AFTER
    forget(client.cluster, done)
    return None


def _brought_back(project: Project, snapshot: Snapshot) -> dict[Ref, Applied]:
    """Return what the portal kept in the namespace, as the mirror shows it.

    Nothing where the namespace, or in an adopted one the GpuProject, is younger than the archiving: the project may be
    in use again, and its row come back from a backup. An adopted one with the portal's labels and no GpuProject was not
    given back completely, since the GpuProject is created first.
    """
    namespace, guard = snapshot.get(_namespace(project)), Ref("GpuProject", project.namespace, GUARD)
    if namespace is None or project.archived_at is None:
        return {}
    is_guard_gone = snapshot.is_gone(Applied(guard, "", namespace.resource_version, "", ""))
    made = namespace if is_guard_gone or not project.adopted else snapshot.get(guard)
    created_at = made.facts.get("created_at") if made else None
    if not created_at or datetime.fromisoformat(created_at) > project.archived_at:
        return {}
    seen = [one for one in snapshot if KINDS[one.ref.kind].selector == OURS and not one.allocation]
    return {one.ref: Applied(one.ref, one.uid, 0, "", one.digest) for one in seen}


def _delete(project: Project, target: Target, snapshot: Snapshot, done: dict[Ref, Applied], client: Client) -> bool:
    """Whether the namespace is still there."""
    namespace = _namespace(project)
    apply(client, plan(DesiredState(unwanted=[[namespace]]), snapshot, done), target)
    return not is_gone(namespace, snapshot, done.get(namespace))


def _end_jobs(project: Project, snapshot: Snapshot, client: Client) -> bool:
    """Delete queued Jobs; whether there were any. In a namespace that is going they go with it."""
    seen = snapshot.get(_namespace(project))
    if seen is None or seen.deleting:
        return False
    jobs = namespaces.queued_jobs(client, project.namespace)
    for job in jobs:
        namespaces.end_job(client, project.namespace, job)
    return bool(jobs)


def _give_back(project: Project, target: Target, snapshot: Snapshot, done: dict[Ref, Applied], client: Client) -> bool:
    """Whether something of ours is still in the namespace; when nothing is, its labels come off."""
    ours = [ref for ref in done if ref.kind not in LAST]
    guard = [ref for ref in done if ref.kind == "GpuProject"]
    apply(client, plan(DesiredState(unwanted=[ours, guard]), snapshot, done), target)
    if not nothing_left([*ours, *guard], snapshot, done):
        return True
    if snapshot.get(_namespace(project)) is not None:
        client.apply(labels_left_behind(project.namespace, project.pod_security, project.guard), manager=LEFT_BEHIND)
        client.apply(without_portal_fields(project.namespace))
    return False


def _namespace(project: Project) -> Ref:
    return Ref("Namespace", "", project.namespace)
