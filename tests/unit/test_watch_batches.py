"""Which events of a batch the watcher records at once, and which can wait."""

from datetime import UTC, datetime

from allocations.cluster.kinds import KINDS, Observation
from allocations.cluster.watcher import POSITION_S, Listed, Synced, items_to_record
from allocations.domain.objects import Ref

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
POD = KINDS["Pod"]
SOON, LATE = POSITION_S / 2, POSITION_S


def position(revision: int, kind: str = "Pod") -> Synced:
    return Synced(KINDS[kind], revision, T0)


def observed(revision: int) -> Synced:
    seen = Observation(ref=Ref("Pod", "vision", "a"), uid="1", resource_version=revision, at=T0, live=True)
    return Synced(POD, revision, T0, seen)


def test_positions_alone_wait_and_the_last_of_each_kind_is_kept():
    kept = [position(9), position(8, "Workload")]
    assert items_to_record([position(7), position(8, "Workload"), position(9)], SOON) == ([], kept)


def test_positions_that_waited_are_recorded_after_a_while():
    assert items_to_record([position(7), position(9)], LATE) == ([position(9)], [])


def test_what_is_observed_is_recorded_at_once_in_its_order_with_the_positions_that_waited():
    items = [position(7), observed(8), position(9)]
    assert items_to_record(items, SOON) == (items, [])


def test_a_list_is_recorded_at_once():
    listed = Listed(POD, [], 9, T0)
    assert items_to_record([position(7), listed], SOON) == ([position(7), listed], [])


def test_nothing_is_recorded_where_nothing_came():
    assert items_to_record([], LATE) == ([], [])
