"""The project controller: the shared objects of a namespace, written by one worker at a time."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.client import Client
from allocations.cluster.manifests import hold_quota
from allocations.cluster.manifests.project import ProjectFacts, build, labels_of
from allocations.domain.actions import DesiredState, is_gone
from allocations.domain.backend_capabilities import COUNTING_PATHS
from allocations.domain.objects import Applied, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation, Shared
from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.assessment import assess
from allocations.lifecycle.modes.registry import mode_of
from allocations.models import Allocation
from allocations.reconcile import allocation_state, job_flavors, mirror, project_state, teardown
from allocations.reconcile.engine.applied import applied_objects, forget, of_rows, part_of
from allocations.reconcile.engine.apply import apply
from allocations.reconcile.engine.plan import plan, stale_refs
from allocations.reconcile.project_state import ProjectSurroundings
from allocations.reconcile.recovery import adopt, may_have_lost
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.reading import Columns, read_tables
from portal.tenants import object_limits
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.dra_resources import VENDOR
from quotas.catalog.models import Kind, Offering
from quotas.limits import names as queue_names


@dataclass(frozen=True)
class SharedBy:
    """Which of the namespace's shared objects should have an allocation, and which are seen to; its state, if it was
    assessed.
    """

    row: Allocation
    wanted: Shared
    seen: Shared
    state: ObservedAllocation | None = None

    def assessed(self, state: ObservedAllocation) -> "SharedBy":
        return replace(self, wanted=state.shared, state=state)


def reconcile_project(slug: str, client: Client) -> datetime | None:
    """Reconcile the namespace with its guard, quotas, limits, LocalQueue, network policies and role bindings; return
    when to reconcile again, or None.

    A deleted namespace ends its allocations as ``failed`` and is created again. The objects of an archived project are
    removed after its last allocation has ended.

    Raises ClusterUnavailable, ClusterRefused; MirrorStale, since leases without a row may exist (``recovery``).
    """
    target = targets.project(client.cluster, slug)
    with advisory_lock(target):
        state = project_state.read(client.cluster, slug)
        if state is None:
            return None
        project, snapshot, applied, live = state.project, state.snapshot, state.applied, state.live
        if may_have_lost(live, snapshot):
            adopt(client.cluster, project.namespace)
            live = _live_rows(project)
        if project.archived_at is not None and not live:
            return teardown.tear_down(project, target, client)
        if _namespace_lost(project, snapshot, applied, client):
            _fail_allocations(live)
            live = _live_rows(project)
        if _is_terminating(project, snapshot):
            return None
        shared = shared_by(project, live, snapshot)
        manifests = build(project_facts(project, shared, snapshot, applied, state.surroundings))
        stale = stale_refs(manifests, snapshot, applied)
        apply(client, plan(DesiredState(objects=manifests, unwanted=[stale]), snapshot, applied), target)
        _record_admitted(shared)
        forget(client.cluster, (ref for ref in stale if is_gone(ref, snapshot, applied.get(ref))))
        return clock.now() + teardown.RECHECK_AFTER if project.archived_at is not None else None


def apply_hold_quota(spec: ResolvedSpec, snapshot: Snapshot, client: Client) -> None:
    """Apply an allocation's own hold quota, in the same form as ``reconcile_project``, and nothing else.

    Raises ClusterUnavailable, ClusterRefused.
    """
    assert spec.number is not None
    target, ref = targets.project(client.cluster, spec.project), hold_quota.ref(spec)
    with advisory_lock(target):
        resources = Columns(project_state.offerings(client.cluster), ("resource", "flavor__path"))
        offerings, records = read_tables(resources, part_of(client.cluster, ref))
        manifest = hold_quota.build(
            spec.namespace,
            spec.number,
            labels_of(spec.department, spec.team, spec.project),
            hold_quota.hold(spec, registry.backend_of(spec).quota(spec)),
            _counted_resources(offerings),
        )
        desired = DesiredState(objects=[manifest])
        apply(client, plan(desired, snapshot, of_rows(records)), target)


def _live_rows(project: Project) -> list[Allocation]:
    return list(project_state.live_rows(Project.objects.filter(pk=project.pk)))


def project_facts(
    project: Project,
    shared: Iterable[SharedBy],
    snapshot: Snapshot,
    applied: Iterable[Ref],
    surroundings: ProjectSurroundings | None = None,
) -> ProjectFacts:
    """Return what the project's manifests are built from: its row, what its live allocations share, the observed and
    the applied objects, and its surroundings; without these one query.
    """
    surroundings = surroundings or project_state.read_surroundings(project)
    offerings, pools = surroundings.offerings, surroundings.pools
    guards: dict[str, dict[str, object]] = {}
    holds: dict[int, hold_quota.Hold | None] = dict.fromkeys(
        _quota_numbers([*applied, *(observed.ref for observed in snapshot)])
    )
    for one in shared:
        spec = spec_of_row.resolved_spec(one.row)
        backend = registry.backend_of(spec)
        if one.wanted.guard:
            guards[spec.name] = backend.guard_entry(spec)
        if one.wanted.quota and spec.number is not None:
            holds[spec.number] = hold_quota.hold(spec, backend.quota(spec))
    return ProjectFacts(
        slug=project.slug,
        namespace=project.namespace,
        team=project.team.slug,
        department=project.team.department.slug,
        cluster_queue=queue_names.cluster_queue(project.team.slug),
        pod_security=project.pod_security,
        egress=project.egress,
        exposure=project.exposure,
        object_quota=object_limits.quota(project.object_limits, is_adopted=project.adopted),
        other_pods=object_limits.other_pods(project.object_limits),
        config_size_kib=project.config_size_kib,
        admin_access=project.admin_access,
        adopted=project.adopted,
        guard_mode=project.guard,
        is_closing=project.archived_at is not None,
        people=surroundings.people,
        guards=guards,
        flavors=_flavors(offerings, pools),
        job_flavors=job_flavors.of_offerings(offerings, pools),
        holds=holds,
        resources=_counted_resources((one.resource, one.flavor.path) for one in offerings),
    )


def shared_by(project: Project, live: Sequence[Allocation], snapshot: Snapshot) -> list[SharedBy]:
    """Return which of the shared objects should have each allocation. Those of which that has changed are assessed;
    one query, if there are any: the rows of a backup may say what was so before.
    """
    found = [SharedBy(row, Shared(row.in_guard, row.in_quota), _seen(row, snapshot)) for row in live]
    changed = [one.row for one in found if one.wanted != one.seen]
    if not changed:
        return found
    objects = mirror.of_allocations(project.cluster_id, project.namespace, changed)
    return [one if one.wanted == one.seen else one.assessed(assess(one.row, objects)) for one in found]


def _seen(row: Allocation, snapshot: Snapshot) -> Shared:
    spec = spec_of_row.resolved_spec(row)
    return mode_of(spec).shared(spec, snapshot)


def _record_admitted(shared: Iterable[SharedBy]) -> None:
    """Write the phase of the allocations whose pods the guard admits from now on, since the API server has accepted it:
    that event need not be waited for. One query for each.
    """
    for one in shared:
        is_new = one.wanted.guard and not one.seen.guard and one.row.phase != Phase.ACTIVE
        if is_new and one.state is not None:
            intervals, gone = allocation_state.read_held(one.row.pk)
            transitions.record_phase(one.row, one.state.with_guard_open(gone), intervals)


def _counted_resources(offerings: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the extended resources of all device plugins, from the resource and the path of each offering."""
    return tuple(sorted({resource for resource, path in offerings if resource and path in COUNTING_PATHS}))


def _quota_numbers(refs: Iterable[Ref]) -> set[int]:
    """Return the slot numbers that have a hold quota."""
    quotas = (ref.name for ref in refs if ref.kind == "ResourceQuota")
    return {int(name.removeprefix(names.HOLD_SLOT)) for name in quotas if name.startswith(names.HOLD_SLOT)}


def _flavors(offerings: Iterable[Offering], pools: Container[int]) -> dict[str, dict[str, object]]:
    """Return the GpuProject entries by flavor: the node share of each GPU resource that queued Jobs may request, and
    whether the team has quota of its pool. Flavors whose nodes publish no share are left out.
    """
    resources: dict[str, dict[str, object]] = {}
    labels: dict[str, dict[str, str]] = {}
    for offering in offerings:
        for resource in offering.requests if offering.kind != Kind.CLAIM and offering.node_share else ():
            if resource.startswith(VENDOR):
                labels[offering.flavor.name] = offering.flavor.node_selector
                quota = {} if offering.pool_id in pools else {"hasQuota": False}
                resources.setdefault(offering.flavor.name, {})[resource] = {**offering.node_share.amounts, **quota}
    return {name: {"nodeLabels": labels[name], "resources": resources[name]} for name in resources}


def _namespace_ref(project: Project) -> Ref:
    return Ref("Namespace", "", project.namespace)


def _is_terminating(project: Project, snapshot: Snapshot) -> bool:
    observed = snapshot.get(_namespace_ref(project))
    return observed is not None and observed.deleting


def _namespace_lost(project: Project, snapshot: Snapshot, applied: dict[Ref, Applied], client: Client) -> bool:
    """Return whether the namespace that the portal applied is being deleted, is gone, or was replaced.

    The mirror selects namespaces by the portal's label. One without it looks gone, so it is read from the API server.
    """
    record, observed = applied.get(_namespace_ref(project)), snapshot.get(_namespace_ref(project))
    if record is None:
        return False
    if observed is None:
        if not snapshot.is_gone(record):
            return False
        live = client.get(record.ref)
        return live is None or live["metadata"]["uid"] != record.uid or "deletionTimestamp" in live["metadata"]
    return observed.deleting or (observed.uid != record.uid and observed.resource_version >= record.resource_version)


def _fail_allocations(live: Iterable[Allocation]) -> None:
    """End the allocations that had objects in the lost namespace. Others wait for the new one."""
    for row in live:
        target = targets.allocation(row.project.cluster_id, row.pk)
        if row.desired != Allocation.Desired.HELD or not applied_objects(target):
            continue
        message = f"The namespace {row.project.namespace} was deleted, and with it all that the allocation held."
        transitions.end(row, Ending.FAILED, "namespace_deleted", message, actor="portal")
        workqueue.enqueue(target)
