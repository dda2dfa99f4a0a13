"""Which shared objects of a project have which allocations, and who is told when that changes."""

from dataclasses import replace
from typing import Any

import pytest

from allocations.cluster import names
from allocations.domain.observed import Shared
from allocations.domain.phases import Phase
from allocations.lifecycle import transitions
from allocations.models import Allocation
from allocations.reconcile import mirror, project_state
from allocations.reconcile.mirror_writer import record_observations
from allocations.reconcile.project import project_facts, shared_by
from portal.core.models import WorkItem
from portal.tenants.models import Project, User
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import hold_quota, quotas_listed, raw, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(project: Project, member: User) -> Allocation:
    fleet(project.team)
    found = allocate(member, project, "l40s/whole", name="train")
    WorkItem.objects.all().delete()
    return found


def due() -> set[str]:
    return set(WorkItem.objects.values_list("target", flat=True))


def lease(row: Allocation, revision: int, *, admitted: bool = True) -> Any:
    conditions = [{"type": "Admitted", "status": "True"}] if admitted else []
    return seen(raw("Workload", row, names.lease(row.name), revision, status={"conditions": conditions}), revision)


def guard(row: Allocation, revision: int, *listed: str) -> Any:
    body = raw("GpuProject", row, names.GUARD, revision, spec={"allocations": {name: {} for name in listed}})
    del body["metadata"]["labels"][names.ALLOCATION]
    return seen(body, revision)


def facts(project: Project) -> tuple[set[str], set[int]]:
    """Return the allocations that the guard lists and the numbers whose quota has slices, as the project would write
    them.
    """
    live, snapshot = list(_live(project)), mirror.of_project(LOCAL, project.namespace)
    found = project_facts(project, shared_by(project, live, snapshot), snapshot, ())
    return set(found.guards), {number for number, hold in found.holds.items() if hold}


def _live(project: Project) -> Any:
    return project_state.live_rows(Project.objects.filter(pk=project.pk))


def test_what_has_not_changed_is_not_judged_again(
    row: Allocation, project: Project, django_assert_num_queries: Any
) -> None:
    surroundings = project_state.read_surroundings(project)
    live, snapshot = list(_live(project)), mirror.of_parts([])
    with django_assert_num_queries(0):
        assert project_facts(project, shared_by(project, live, snapshot), snapshot, (), surroundings).guards == {}


def test_what_a_backup_has_forgotten_is_seen_on_the_cluster(row: Allocation, project: Project) -> None:
    quotas_listed(1)
    record_observations(LOCAL, [lease(row, 2), seen(hold_quota(row, 3), 3), guard(row, 4, "train")])
    row.refresh_from_db()
    assert (row.in_guard, row.in_quota) == (False, False)
    assert facts(project) == ({"train"}, {row.number})


def test_what_a_backup_says_and_the_cluster_does_not_show_is_not_opened(row: Allocation, project: Project) -> None:
    transitions.record_shared(row, Shared(guard=True, quota=True), is_due=False)
    assert facts(project) == (set(), set())


def test_the_project_is_told_together_with_the_change(
    row: Allocation, project: Project, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        transitions.record_shared(row, Shared(guard=True, quota=True), is_due=True)
    assert due() == {f"{LOCAL}/project:{project.slug}"}
    assert Allocation.objects.filter(pk=row.pk, in_guard=True, in_quota=True).exists()
    with django_assert_num_queries(0):
        transitions.record_shared(row, Shared(guard=True, quota=True), is_due=False)


def test_of_all_that_a_guard_lists_those_are_told_that_it_began_or_ceased_to_admit(
    row: Allocation, project: Project, member: User
) -> None:
    others = [allocate(member, project, "l40s/whole", name=name) for name in ("other", "next")]
    record_observations(LOCAL, [guard(row, 4, "train", "other")])
    WorkItem.objects.all().delete()
    record_observations(LOCAL, [guard(row, 5, "train", "next")])
    assert due() == {f"{LOCAL}/allocation:{one.pk}" for one in others}


def test_a_guard_that_is_gone_admits_none(row: Allocation) -> None:
    listing = guard(row, 4, "train")
    record_observations(LOCAL, [listing])
    WorkItem.objects.all().delete()
    record_observations(LOCAL, [replace(listing, resource_version=5, gone=True)])
    assert f"{LOCAL}/allocation:{row.pk}" in due()


def test_an_active_allocation_is_not_told_that_its_guard_admits_it(row: Allocation) -> None:
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE)
    listing = guard(row, 4, "train")
    record_observations(LOCAL, [listing])
    assert f"{LOCAL}/allocation:{row.pk}" not in due()
    record_observations(LOCAL, [guard(row, 5)])
    assert f"{LOCAL}/allocation:{row.pk}" in due()
