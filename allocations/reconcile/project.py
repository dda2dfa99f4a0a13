"""The controller of projects: the shared objects of a namespace, written by one worker at a time."""

from collections.abc import Iterable
from datetime import datetime

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.client import Client
from allocations.cluster.manifests import former_holds, hold_quota
from allocations.cluster.manifests.project import ProjectFacts, build
from allocations.domain.actions import DesiredState, is_gone
from allocations.domain.backend_capabilities import COUNTING_PATHS
from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.domain.phases import Ending
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import mirror, teardown
from allocations.reconcile.engine.apply import applied as applied_of
from allocations.reconcile.engine.apply import apply, forget
from allocations.reconcile.engine.plan import plan, unwanted
from allocations.reconcile.recovery import adopt
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants import object_limits
from portal.tenants.models import Membership, Project, Role, Team
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.dra_resources import VENDOR
from quotas.catalog.models import Kind, Offering
from quotas.limits import names as queue_names
from quotas.limits.selectors import pools_with_quota


def reconcile_project(slug: str, client: Client) -> datetime | None:
    """Bring namespace, guard, quotas, limits, queue, network walls and role bindings to what is wanted.

    A namespace that was deleted ends the allocations it held as ``failed``, and is made again for the project. Of an
    archived project it is all kept until the last allocation has ended, and then taken down.
    Raises ClusterUnavailable, ClusterRefused; MirrorStale, since slices that the rows do not know may be held.
    """
    with advisory_lock("project", slug):
        found = Project.objects.select_related("team__department").filter(cluster=client.cluster, slug=slug)
        project, target = found.first(), targets.project(client.cluster, slug)
        if project is None:
            return None
        mirror.require_recent(client.cluster)
        adopt(client.cluster, project.namespace)
        if project.archived_at is not None and not Allocation.objects.filter(project=project, ended_at=None).exists():
            return teardown.tear_down(project, target, client)
        snapshot, done = mirror.of_project(client.cluster, project.namespace), applied_of(target)
        if _namespace_lost(project, snapshot, done, client):
            _fail_allocations(project)
        if _is_terminating(project, snapshot):
            return None
        manifests = build(facts(project, snapshot, done))
        wanted = {Ref.of_manifest(m) for m in manifests}
        stale = unwanted(wanted, snapshot, done)
        apply(client, plan(DesiredState(objects=manifests, unwanted=[stale]), snapshot, done), target)
        forget(client.cluster, (ref for ref in stale if is_gone(ref, snapshot, done.get(ref))))
        return clock.now() + teardown.RECHECK_AFTER if project.archived_at is not None else None


def facts(project: Project, snapshot: Snapshot, done: Iterable[Ref]) -> ProjectFacts:
    """The project as its manifests need it, from its rows and what is seen and was applied (``done``); a fixed number
    of queries."""
    guards: dict[str, dict[str, object]] = {}
    holds: dict[int, hold_quota.Hold | None] = dict.fromkeys(_numbers([*done, *(seen.ref for seen in snapshot)]))
    for row in spec_of_row.rows().filter(project=project, ended_at=None).order_by("name"):
        asked = spec_of_row.resolved_spec(row)
        situation = hold.assess(asked, spec_of_row.intent(row), snapshot, {}, clock.now(), spec_of_row.deadlines(row))
        backend = registry.backend_of(asked)
        if situation.is_usable:
            guards[asked.name] = backend.guard_entry(asked)
        if situation.keeps_quota and asked.number is not None:
            holds[asked.number] = hold_quota.hold(asked, backend.quota(asked), snapshot)
    return ProjectFacts(
        slug=project.slug,
        namespace=project.namespace,
        team=project.team.slug,
        department=project.team.department.slug,
        cluster_queue=queue_names.cluster_queue(project.team.slug),
        pod_security=project.pod_security,
        egress=project.egress,
        exposure=project.exposure,
        object_quota=object_limits.quota(project.object_limits),
        other_pods=object_limits.other_pods(project.object_limits),
        config_size_kib=project.config_size_kib,
        admin_access=project.admin_access,
        adopted=project.adopted,
        guard_mode=project.guard,
        is_closing=project.archived_at is not None,
        people=_people(project),
        guards=guards,
        flavors=_flavors(project.cluster_id, project.team),
        holds=holds,
        former=former_holds.used(snapshot),
        resources=_counted_resources(project.cluster_id),
    )


def _numbers(refs: Iterable[Ref]) -> set[int]:
    """The numbers that have a hold quota."""
    quotas = (ref.name for ref in refs if ref.kind == "ResourceQuota")
    return {int(name.removeprefix(names.HOLD_SLOT)) for name in quotas if name.startswith(names.HOLD_SLOT)}


def _people(project: Project) -> dict[str, tuple[str, ...]]:
    """Cluster role → usernames. Operators work with their own cluster credentials, not through a project's roles."""
    members = Membership.objects.filter(team=project.team, user__is_active=True).values_list("user__username", "role")
    role_of = {Role.VIEWER: names.VIEWER_ROLE}
    people: dict[str, list[str]] = {names.MEMBER_ROLE: [], names.VIEWER_ROLE: []}
    for username, role in members:
        people[role_of.get(Role(role), names.MEMBER_ROLE)].append(username)
    return {role: tuple(sorted(usernames)) for role, usernames in people.items()}


def _counted_resources(cluster: str) -> tuple[str, ...]:
    accepted = Offering.objects.filter(flavor__cluster=cluster, flavor__accepted=True)
    offerings = accepted.filter(flavor__path__in=COUNTING_PATHS).exclude(resource="")
    return tuple(offerings.order_by("resource").values_list("resource", flat=True).distinct())


def _flavors(cluster: str, team: Team) -> dict[str, dict[str, object]]:
    """What goes with the GPUs that queued Jobs ask for by resource, where a flavor's nodes tell, and of which the team
    has no quota: {flavor: GpuProject entry}."""
    pools = pools_with_quota(team)
    resources: dict[str, dict[str, object]] = {}
    labels: dict[str, dict[str, str]] = {}
    offered = Offering.objects.filter(flavor__cluster=cluster, flavor__accepted=True).exclude(kind=Kind.CLAIM)
    for offering in offered.select_related("flavor").order_by("key"):
        for resource in offering.requests if offering.node_share else ():
            if resource.startswith(VENDOR):
                labels[offering.flavor.name] = offering.flavor.node_selector
                without = {} if offering.pool_id in pools else {"hasQuota": False}
                resources.setdefault(offering.flavor.name, {})[resource] = {**offering.node_share.amounts, **without}
    return {name: {"nodeLabels": labels[name], "resources": resources[name]} for name in resources}


def _namespace_ref(project: Project) -> Ref:
    return Ref("Namespace", "", project.namespace)


def _is_terminating(project: Project, snapshot: Snapshot) -> bool:
    seen = snapshot.get(_namespace_ref(project))
    return seen is not None and seen.deleting


def _namespace_lost(project: Project, snapshot: Snapshot, done: dict[Ref, Applied], client: Client) -> bool:
    """Whether the namespace that we made is going, gone, or another one of its name.

    The mirror has namespaces by our label, so one whose label was taken off looks gone: the API server is asked.
    """
    known, seen = done.get(_namespace_ref(project)), snapshot.get(_namespace_ref(project))
    if known is None:
        return False
    if seen is None:
        if not snapshot.is_gone(known):
            return False
        live = client.get(known.ref)
        return live is None or live["metadata"]["uid"] != known.uid or "deletionTimestamp" in live["metadata"]
    return seen.deleting or (seen.uid != known.uid and seen.resource_version >= known.resource_version)


def _fail_allocations(project: Project) -> None:
    """End what lived in the lost namespace. What was asked since and has no lease yet waits for the new one."""
    live = Allocation.objects.filter(project=project, ended_at=None)
    for row in live.filter(desired=Allocation.Desired.HELD):
        target = targets.allocation(project.cluster_id, row.pk)
        if not applied_of(target):
            continue
        message = f"The namespace {project.namespace} was deleted, and with it all that the allocation held."
        transitions.end(row, Ending.FAILED, "namespace_deleted", message, actor="portal")
        workqueue.enqueue(target)
