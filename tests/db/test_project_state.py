"""What the reconcile of one project depends on."""

import pytest

from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, WatchState
from allocations.reconcile import project_state
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.catalog.models import Flavor
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(project: Project, member: User) -> list[Allocation]:
    fleet(project.team)
    WatchState.objects.create(cluster_id=LOCAL, kind="Workload", resource_version=1, synced_at=clock.now())
    return [
        allocate(member, project, offering, name=name) for name, offering in (("a", "l40s/whole"), ("b", "h100/whole"))
    ]


def test_live_allocations_have_all_that_their_objects_need_in_one_query(
    rows: list[Allocation], project: Project, django_assert_num_queries
) -> None:
    with django_assert_num_queries(1):
        state = project_state.read(LOCAL, project.slug)
        assert state is not None
        specs = [spec_of_row.resolved_spec(row) for row in state.live]
    known = spec_of_row.rows().order_by("name")
    assert specs == [spec_of_row.resolved_spec(row) for row in known]
    assert [one.lease_record.to_text() for one in specs] == [
        spec_of_row.resolved_spec(row).lease_record.to_text() for row in known
    ]


def test_a_flavor_that_is_offered_no_more_stays_known_for_its_allocations(
    rows: list[Allocation], project: Project
) -> None:
    Flavor.objects.filter(name="h100").update(accepted=False)
    state = project_state.read(LOCAL, project.slug)
    assert state is not None
    assert [row.offering.key for row in state.live] == ["l40s/whole", "h100/whole"]
    assert {one.flavor.name for one in state.surroundings.offerings} == {"l40s"}


def test_an_ended_allocation_is_not_among_the_live_ones(rows: list[Allocation], project: Project) -> None:
    ended = {"ended_at": clock.now(), "desired": "released", "phase": "ended", "outcome": "released"}
    Allocation.objects.filter(pk=rows[0].pk).update(**ended)
    state = project_state.read(LOCAL, project.slug)
    assert state is not None
    assert [row.name for row in state.live] == ["b"]
