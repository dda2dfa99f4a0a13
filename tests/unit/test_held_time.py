"""The time of an allocation: hours count while it is held, and a wait ends."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.domain.held_time import AllocationTime, Due, HeldTime, hours, in_words, length, seconds

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(hours_later: float) -> datetime:
    return START + hours_later * HOUR


def asked(**values) -> AllocationTime:
    return AllocationTime(START, **{"hours": Decimal(8), "give_up_at": at(48), **values})


def after(*intervals, **values) -> AllocationTime:
    spans = [(at(begin), None if end is None else at(end)) for begin, end in intervals]
    return asked(**values, held=HeldTime().with_intervals(spans))


def test_hours_do_not_count_while_it_waits():
    time = asked()
    assert (time.end, time.left) == (None, 8 * HOUR)
    assert time.due == Due(at(48), "gave_up_waiting")


def test_the_end_is_set_when_it_is_held():
    assert after((30, None)).end == at(38)
    assert after((30, None)).due == Due(at(38), "ends_at")


def test_an_eviction_keeps_what_is_left():
    evicted = after((30, 33))
    assert (evicted.end, evicted.left) == (None, 5 * HOUR)
    assert after((30, 33), (40, None)).end == at(45)


def test_it_waits_as_long_again_after_an_eviction():
    assert after((30, 33)).due == Due(at(33 + 48), "gave_up_waiting")


def test_hours_that_are_used_up_end_it_although_it_is_not_held():
    assert after((1, 9)).due == Due(at(9), "ends_at")


def test_hours_were_over_when_they_were_used_up_however_long_it_was_held():
    assert after((0, 9)).over_since == at(8)
    assert after((0, 3), (5, 12)).over_since == at(10)
    assert after((2, None)).over_since == at(10)
    assert after((0, 7)).over_since is None


def test_slots_held_at_once_count_once():
    time = after((1, 3), (1, 4), (2, 3))
    assert time.held == HeldTime(3 * HOUR, at(4))
    assert after((1, 3), (2, None)).end == at(9)


def test_what_is_counted_is_not_counted_again():
    once = HeldTime().with_intervals([(at(1), at(3))])
    assert once.with_intervals([(at(1), at(3))]) == once
    assert once.with_intervals([(at(1), at(4))]).before == 3 * HOUR
    assert once.with_intervals([(at(2), None)]).since == at(3)


def test_a_date_stays_as_it_is():
    time = after((30, 33), (40, None), hours=None, ends_at=at(72))
    assert (time.end, time.left, time.due) == (at(72), None, Due(at(72), "ends_at"))
    waiting = asked(hours=None, ends_at=at(24), give_up_at=at(48))
    assert waiting.due == Due(at(24), "ends_at")


def test_what_was_asked_before_there_was_a_wait_waits_until_its_end():
    assert asked(hours=None, ends_at=at(72), give_up_at=None).due == Due(at(72), "ends_at")


def test_what_is_not_held_yet_is_expected_to_count_from_now_or_from_its_start():
    assert asked().expected_end(at(5)) == at(13)
    assert AllocationTime(at(10), hours=Decimal(2)).expected_end(at(5)) == at(12)
    assert after((1, None)).expected_end(at(5)) == at(9)
    assert after((1, None)).expected_end(at(50)) == at(50)


def test_hours_that_are_left_go_down_while_it_is_held():
    assert after((1, None)).left_at(at(3)) == 6 * HOUR
    assert after((1, 3)).left_at(at(30)) == 6 * HOUR
    assert after((1, None)).left_at(at(30)) == timedelta(0)


@pytest.mark.parametrize(
    ("given_hours", "words"), [("8", "8 hours"), ("1.000000", "1 hour"), ("1.50", "1.5 hours"), ("10", "10 hours")]
)
def test_hours_in_words(given_hours, words):
    assert in_words(Decimal(given_hours)) == words


@given(st.decimals(min_value="0.000001", max_value=8784, places=6))
def test_hours_are_exact(given_hours):
    assert hours(length(given_hours)) == Fraction(given_hours)
    assert seconds(length(given_hours)) == Decimal(given_hours) * 3600


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), max_size=12), st.integers(0, 12))
def test_it_makes_no_difference_when_holds_are_counted(spans, part):
    """Counted one after another or at once, the time held is that of the union."""
    intervals = sorted((START + timedelta(microseconds=a), START + timedelta(microseconds=a + n)) for a, n in spans)
    union = {moment for a, n in spans for moment in range(a, a + n)}
    together = HeldTime().with_intervals(intervals)
    assert together.before == timedelta(microseconds=len(union))
    assert HeldTime().with_intervals(intervals[:part]).with_intervals(intervals).before <= together.before
