"""Which items of a watch are recorded at once, and which can wait."""

from dataclasses import replace
from datetime import UTC, datetime

from allocations.cluster.kinds import KINDS, Observation
from allocations.cluster.watcher import Batch, Listed, Synced, batch_to_record
from allocations.domain.objects import Ref

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
POD = KINDS["Pod"]


def position(revision: int, kind: str = "Pod") -> Synced:
    return Synced(KINDS[kind], revision, T0)


def observed(revision: int, kind: str = "Pod") -> Synced:
    seen = Observation(ref=Ref(kind, "vision", "a"), uid="1", resource_version=revision, at=T0, live=True)
    return Synced(KINDS[kind], revision, T0, seen)


def soon(items):
    batch, kept = batch_to_record(items, with_positions=False)
    return batch.items, kept


def test_positions_alone_wait_and_the_last_of_each_kind_is_kept():
    kept = [position(8, "Workload"), position(9)]
    assert soon([position(7), position(8, "Workload"), position(9)]) == ([], kept)


def test_positions_that_waited_are_recorded_after_a_while():
    assert batch_to_record([position(7), position(9)], with_positions=True) == (Batch([position(9)], True), [])


def test_what_is_observed_is_recorded_at_once_in_its_order():
    items = [position(7), observed(8), position(9)]
    assert soon(items)[0] == items


def test_positions_of_what_was_recorded_at_once_are_kept():
    items = [position(7), observed(8, "Workload"), observed(9)]
    assert soon(items)[1] == [position(9), position(8, "Workload")]


def test_what_is_observed_is_recorded_with_the_positions_when_these_are_due():
    items = [position(7), observed(8), observed(9), position(10)]
    assert batch_to_record(items, with_positions=True) == (Batch([observed(8), observed(9), position(10)], True), [])


def test_numbers_of_a_queue_wait_in_their_order():
    items = [observed(7, "ClusterQueue"), observed(8, "ClusterQueue"), position(9, "ClusterQueue")]
    assert soon(items) == ([], items)
    assert batch_to_record(items, with_positions=True)[0].items == items


def test_numbers_of_a_queue_are_recorded_with_the_next_other_observation():
    items = [observed(7, "ClusterQueue"), observed(8)]
    assert soon(items)[0] == items


def test_a_list_is_recorded_at_once():
    listed = Listed(POD, [], 9, T0)
    assert soon([position(7), listed])[0] == [position(7), listed]


def test_a_position_is_never_kept_with_an_observation_that_was_recorded():
    kept = soon([observed(8)])[1]
    assert kept == [replace(observed(8), observation=None)]


def test_nothing_is_recorded_where_nothing_came():
    assert batch_to_record([], with_positions=True) == (Batch([], True), [])
