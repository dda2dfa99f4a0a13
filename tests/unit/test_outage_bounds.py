"""What an outage explains of the difference between the ledger and what a witness saw."""

from datetime import UTC, datetime

import pytest

from allocations.cluster.client import WATCH_S
from quotas.metering.models import UsageInterval
from tests.support.faults.outages import Bound, compare, hidden, unexplained
from tests.support.faults.witness import Hold

HIDDEN = [(100.0, 140.0), (300.0, 310.0)]


def test_an_outage_hides_the_time_of_a_watch_before_and_after_it_and_goes_on_with_one_that_begins_by_then() -> None:
    assert hidden([(300, 301), (100, 105), (114, 120), (131, 132)]) == [
        (100 - WATCH_S, 120 + WATCH_S),
        (131 - WATCH_S, 132 + WATCH_S),
        (300 - WATCH_S, 301 + WATCH_S),
    ]


@pytest.mark.parametrize("recorded", [198.0, 200.0, 202.0, 204.0])
def test_a_bound_is_right_within_the_time_in_which_it_was_seen_and_the_slack(recorded: float) -> None:
    assert unexplained(Bound("end", recorded, (200.0, 202.0), estimated=False), HIDDEN, 3) == ""


def test_a_watched_bound_is_not_off_even_in_an_outage() -> None:
    found = unexplained(Bound("end", 105.0, (130.0, 131.0), estimated=False), HIDDEN, 3)
    assert found == "its end is recorded -25.0 s off, and is not estimated"


def test_an_estimated_bound_is_off_as_long_as_an_outage_hid_both_moments() -> None:
    assert unexplained(Bound("end", 105.0, (130.0, 131.0), estimated=True), HIDDEN, 3) == ""


@pytest.mark.parametrize(("recorded", "seen"), [(105.0, 150.0), (150.0, 105.0), (105.0, 305.0), (200.0, 210.0)])
def test_an_estimated_bound_that_no_one_outage_hid_is_found(recorded: float, seen: float) -> None:
    found = unexplained(Bound("start", recorded, (seen, seen), estimated=True), HIDDEN, 3)
    assert found == f"its start is recorded {recorded - seen:+.1f} s off, which no outage explains"


def interval(start: float, end: float | None) -> UsageInterval:
    ends = None if end is None else datetime.fromtimestamp(end, UTC)
    return UsageInterval(start=datetime.fromtimestamp(start, UTC), end=ends, estimated_end=end is not None)


def test_bounds_are_compared_with_those_of_the_hold_that_overlaps() -> None:
    holds = [Hold((9.0, 10.0), (20.0, 21.0)), Hold((30.0, 31.0))]
    assert compare([interval(10, 20), interval(25, 25), interval(30, None)], holds, HIDDEN, 50, 3) == (
        [
            Bound("start", 10, (9.0, 10.0), estimated=False),
            Bound("end", 20, (20.0, 21.0), estimated=True),
            Bound("start", 30, (30.0, 31.0), estimated=False),
            Bound("end", 50, (50, 50), estimated=False),
        ],
        [],
    )


def test_what_is_wrong_with_a_bound_is_told() -> None:
    _, wrong = compare([interval(10, 20)], [Hold((9.0, 10.0), (29.0, 30.0))], HIDDEN, 50, 3)
    assert wrong == ["its end is recorded -9.0 s off, which no outage explains"]


def test_a_hold_that_is_not_billed_was_hidden_as_a_whole_or_is_found() -> None:
    first, hidden, late = Hold((9.0, 10.0), (20.0, 21.0)), Hold((101.0, 102.0), (130.0, 131.0)), Hold((200.0, 201.0))
    assert compare([interval(10, 20)], [first, hidden], HIDDEN, 250, 3)[1] == []
    assert compare([interval(200, None)], [first, late], HIDDEN, 250, 3)[1] == [
        "it was held, and is not billed, for 12.0 s that no outage explains"
    ]
    assert compare([], [Hold((90.0, 91.0), (130.0, 131.0))], HIDDEN, 250, 3)[1] == [
        "it was held, and is not billed, for 41.0 s that no outage explains"
    ]


def test_what_is_billed_and_was_not_held_is_found() -> None:
    held = Hold((9.0, 10.0), (20.0, 21.0))
    assert compare([interval(10, 20), interval(50, 60)], [held], HIDDEN, 250, 3)[1] == [
        "it is billed, and was not held, for 10.0 s that no outage explains"
    ]


def test_a_time_free_that_the_witness_may_have_missed_does_not_count() -> None:
    intervals = [interval(10, 20), interval(21, 30), interval(34, 40)]
    joined = [Hold((9.0, 10.0), (30.0, 31.0)), Hold((33.5, 34.0), (39.0, 40.0))]
    assert compare(intervals, joined, HIDDEN, 250, 2)[1] == []
    assert compare(intervals, [Hold((9.0, 10.0), (39.0, 40.0))], HIDDEN, 250, 2)[1] == [
        "its end is recorded -9.0 s off, which no outage explains",
        "it is billed, and was not held, for 6.0 s that no outage explains",
    ]
    assert compare([interval(10, 40)], [Hold((9.0, 10.0), (20.0, 20.5)), *joined[1:]], HIDDEN, 250, 2)[1] == [
        "its end is recorded +19.5 s off, which no outage explains",
        "it was held, and is not billed, for 6.5 s that no outage explains",
    ]


def test_what_began_and_ended_between_two_readings_of_the_witness_may_be_billed() -> None:
    assert compare([interval(50, 58)], [], HIDDEN, 250, 2, unread=[(49.0, 59.0)])[1] == []
    assert compare([interval(50, 58)], [], HIDDEN, 250, 2, unread=[(40.0, 49.0), (49.0, 54.0), (54.0, 59.0)])[1] == [
        "it is billed, and was not held, for 8.0 s that no outage explains"
    ]


def test_a_hold_that_is_not_certain_need_not_be_billed_and_if_it_is_its_bounds_are_compared() -> None:
    maybe = Hold((50.0, 51.0), (60.0, 61.0), is_certain=False)
    assert compare([], [maybe], HIDDEN, 250, 3)[1] == []
    assert compare([interval(50, 60)], [maybe], HIDDEN, 250, 3)[1] == []
    assert compare([interval(50, 70)], [maybe], HIDDEN, 250, 3)[1] == [
        "its end is recorded +9.0 s off, which no outage explains"
    ]
