"""What the reconcile of one allocation depends on, as it is read before its row is known."""

import pytest

from allocations.cluster import names
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import allocation_state, mirror
from portal.core import clock
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.pages import held
from tests.support.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(team, project) -> Allocation:
    fleet(team)
    first = allocate(person(team), project, name="first")
    made = allocate(person(team), project, name="second")
    assert (first.number, made.number) == (0, 1)
    return made


def mirrored(kind: str, name: str, namespace: str, allocation: str = "", **facts: str) -> None:
    values = {"allocation": allocation, "facts": facts, "uid": name, "resource_version": 7, "seen_at": clock.now()}
    MirrorObject.objects.create(cluster_id=LOCAL, kind=kind, name=name, namespace=namespace, **values)


def test_it_has_the_objects_that_are_read_of_a_known_row(row: Allocation, django_assert_num_queries) -> None:
    namespace = row.project.namespace
    mirrored("Workload", "second-lease", namespace, "second")
    mirrored("Workload", "first-lease", namespace, "first")
    mirrored("Pod", "of-its-class", namespace, "first", **{"class": names.hold_slot(1)})
    mirrored("Pod", "of-another-class", namespace, **{"class": names.hold_slot(0)})
    mirrored("Pod", "elsewhere", "elsewhere", "second", **{"class": names.hold_slot(1)})
    mirrored("ResourceQuota", names.hold_slot(0), namespace)
    with django_assert_num_queries(1):
        state = allocation_state.read(LOCAL, str(row.pk))
    assert state is not None
    found = {one.ref.name for one in state.snapshot}
    assert found == {"second-lease", "of-its-class", names.hold_slot(0)}
    assert found == {one.ref.name for one in mirror.of_allocations(LOCAL, namespace, [row])}


def test_it_has_the_intervals_since_the_time_that_is_counted_and_the_first_start(row: Allocation) -> None:
    held(row, hours=3)
    state = allocation_state.read(LOCAL, str(row.pk))
    assert state is not None
    assert [one.end for one in state.intervals.latest] == [None]
    assert state.intervals.first_start == state.row.held_since


def test_an_allocation_of_another_cluster_has_no_state_here(row: Allocation) -> None:
    assert allocation_state.read("far", str(row.pk)) is None
