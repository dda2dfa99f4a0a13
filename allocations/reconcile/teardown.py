"""take_down: what is left of an archived project, once its last allocation has ended, goes from the cluster.

People lose their way in first. Then their queued Jobs end, which are on the project's quota. A namespace that
the portal made is deleted with all that is in it; an adopted one loses what the portal keeps there, the guard's data
last, and then our labels: it is its owners' again.
"""

from datetime import datetime, timedelta

from allocations.cluster import namespaces
from allocations.cluster.client import Client
from allocations.cluster.kinds import KINDS, OURS
from allocations.cluster.manifests.project import given_back, nothing_of_ours
from allocations.cluster.names import GUARD, LEFT_BEHIND
from allocations.domain.actions import Wanted, is_gone, nothing_left
from allocations.domain.objects import Applied, Ref, View
from allocations.reconcile import mirror
from allocations.reconcile.engine.apply import applied, apply, forget
from allocations.reconcile.engine.plan import plan
from portal.core import clock
from portal.tenants.models import Project
from portal.workqueue.targets import Target

LOOK_AGAIN = timedelta(seconds=5)
LAST = ("GpuProject", "Namespace")


def take_down(project: Project, target: Target, client: Client) -> datetime | None:
    """The next step towards nothing; returns when to look again, or None when nothing is left.

    What was taken down before and is there again, since etcd came back from a backup, is taken down once more."""
    view = mirror.of_project(project.namespace)
    done = applied(target) or _brought_back(project, view)
    if not done:
        return None
    ways_in = [ref for ref in done if ref.kind == "RoleBinding"]
    apply(client, plan(Wanted(unwanted=[ways_in]), view, done), target)
    if not nothing_left(ways_in, view, done):
        return clock.now() + LOOK_AGAIN
    if _end_jobs(project, view, client):
        return clock.now() + LOOK_AGAIN
    leave = _give_back if project.adopted else _delete
    if leave(project, target, view, done, client):
        return clock.now() + LOOK_AGAIN
    forget(done)
    return None


def _brought_back(project: Project, view: View) -> dict[Ref, Applied]:
    """What the portal kept in the namespace, as the mirror shows it.

    Nothing where the namespace, or in an adopted one the GpuProject, is younger than the archiving: the project may be
    in use again, and its row come back from a backup. An adopted one with our labels and no GpuProject was not given
    back to the end, since the GpuProject is made first.
    """
    namespace, guard = view.get(_namespace(project)), Ref("GpuProject", project.namespace, GUARD)
    if namespace is None or project.archived_at is None:
        return {}
    is_guard_gone = view.is_gone(Applied(guard, "", namespace.resource_version, "", ""))
    made = namespace if is_guard_gone or not project.adopted else view.get(guard)
    created_at = made.facts.get("created_at") if made else None
    if not created_at or datetime.fromisoformat(created_at) > project.archived_at:
        return {}
    seen = [one for one in view if KINDS[one.ref.kind].selector == OURS and not one.allocation]
    return {one.ref: Applied(one.ref, one.uid, 0, "", one.digest) for one in seen}


def _delete(project: Project, target: Target, view: View, done: dict[Ref, Applied], client: Client) -> bool:
    """Whether the namespace is still there."""
    namespace = _namespace(project)
    apply(client, plan(Wanted(unwanted=[[namespace]]), view, done), target)
    return not is_gone(namespace, view, done.get(namespace))


def _end_jobs(project: Project, view: View, client: Client) -> bool:
    """Delete queued Jobs; whether there were any. In a namespace that is going they go with it."""
    seen = view.get(_namespace(project))
    if seen is None or seen.deleting:
        return False
    jobs = namespaces.queued_jobs(client, project.namespace)
    for job in jobs:
        namespaces.end_job(client, project.namespace, job)
    return bool(jobs)


def _give_back(project: Project, target: Target, view: View, done: dict[Ref, Applied], client: Client) -> bool:
    """Whether something of ours is still in the namespace; when nothing is, its labels come off."""
    ours = [ref for ref in done if ref.kind not in LAST]
    guard = [ref for ref in done if ref.kind == "GpuProject"]
    apply(client, plan(Wanted(unwanted=[ours, guard]), view, done), target)
    if not nothing_left([*ours, *guard], view, done):
        return True
    if view.get(_namespace(project)) is not None:
        client.apply(given_back(project.namespace, project.pod_security, project.guard), manager=LEFT_BEHIND)
        client.apply(nothing_of_ours(project.namespace))
    return False


def _namespace(project: Project) -> Ref:
    return Ref("Namespace", "", project.namespace)
