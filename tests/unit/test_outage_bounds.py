"""What an outage explains of the difference between the ledger and what a witness saw."""

from datetime import UTC, datetime

import pytest

from allocations.cluster.client import WATCH_S
from quotas.metering.models import UsageInterval
from tests.support.faults.outages import UNORDERED_S, Bound, compare, hidden
from tests.support.faults.witness import Hold

HIDDEN = [(100.0, 140.0), (300.0, 310.0)]
NOW, SLACK_S = 500.0, 3.0


def test_an_outage_hides_the_time_of_a_watch_before_and_after_it_and_goes_on_with_one_that_begins_by_then() -> None:
    assert hidden([(300, 301), (100, 105), (114, 120), (131, 132)]) == [
        (100 - WATCH_S, 120 + WATCH_S),
        (131 - WATCH_S, 132 + WATCH_S),
        (300 - WATCH_S, 301 + WATCH_S),
    ]


def interval(start: float, end: float | None, estimated: str = "") -> UsageInterval:
    ends = None if end is None else datetime.fromtimestamp(end, UTC)
    return UsageInterval(
        start=datetime.fromtimestamp(start, UTC),
        end=ends,
        estimated_start="start" in estimated,
        estimated_end="end" in estimated,
    )


def hold(start: float, end: float | None = None) -> Hold:
    return Hold((start, start), None if end is None else (end, end))


def wrong(intervals: list[UsageInterval], holds: list[Hold]) -> list[str]:
    return compare(intervals, holds, HIDDEN, NOW, SLACK_S)[1]


def billed(seconds: float, start: str, end: str) -> str:
    return f"it is billed, and was not held, for {seconds:.1f} s from {start} to {end}, which no outage explains"


def held(seconds: float, start: str, end: str) -> str:
    return f"it was held, and is not billed, for {seconds:.1f} s from {start} to {end}, which no outage explains"


def test_each_interval_is_compared_with_the_holds_in_its_time() -> None:
    found = compare([interval(10, 20, "end"), interval(25, 25), interval(30, None)], [hold(9, 21), hold(30)], [], 50)
    assert found == (
        [
            Bound("start", 10, (9, 9), estimated=False),
            Bound("end", 20, (21, 21), estimated=True),
            Bound("start", 30, (30, 30), estimated=False),
            Bound("end", 50, (50, 50), estimated=False),
        ],
        [],
    )


def test_a_hold_that_is_lost_and_found_within_seconds_is_compared_with_what_is_billed_of_each() -> None:
    """As a start that fails after the holder ran for a moment, and the next one on the same device."""
    assert wrong([interval(211.5, 211.9), interval(216.1, 251.1)], [hold(211.5, 211.9), hold(216.1, 251.1)]) == []


@pytest.mark.parametrize(
    ("start", "end"), [(198.0, 203.0), (200.0, 200.5), (200.9, 202.0), (199.5, 199.9), (203.5, 203.9)]
)
def test_a_bound_is_right_within_the_slack(start: float, end: float) -> None:
    assert wrong([interval(start, end)], [hold(200.0, 201.0)]) == []


def test_what_is_billed_and_was_not_held_is_found() -> None:
    assert wrong([interval(210, 260)], [hold(210, 250)]) == [billed(10, "00:04:10", "00:04:20")]
    assert wrong([interval(210, 250)], [hold(220, 250)]) == [billed(10, "00:03:30", "00:03:40")]


def test_an_interval_without_any_hold_is_found_however_short_it_is() -> None:
    assert wrong([interval(210, 220), interval(250, 250.2)], [hold(210, 220)]) == [billed(0.2, "00:04:10", "00:04:10")]


def test_an_interval_that_goes_on_while_nothing_is_held_is_found_in_an_outage_too() -> None:
    found = wrong([interval(105, 135, "start end")], [hold(105, 110), hold(130, 135)])
    assert found == [billed(20, "00:01:50", "00:02:10")]


def test_a_bound_that_was_watched_is_not_off_in_an_outage_either() -> None:
    assert wrong([interval(105, 135, "start")], [hold(105, 120)]) == [billed(15, "00:02:00", "00:02:15")]
    assert wrong([interval(105, 120)], [hold(105, 135)]) == [held(15, "00:02:00", "00:02:15")]


def test_an_estimated_bound_is_off_as_long_as_one_outage_hid_all_of_it() -> None:
    assert wrong([interval(50, 105, "end")], [hold(50, 130)]) == []
    assert wrong([interval(105, 200, "start")], [hold(130, 200)]) == []
    assert wrong([interval(105, 200, "start")], [hold(150, 200)]) == [billed(45, "00:01:45", "00:02:30")]
    assert wrong([interval(50, 105, "end")], [hold(50, 305)]) == [held(200, "00:01:45", "00:05:05")]


def test_a_hold_that_is_not_billed_was_hidden_as_a_whole_or_is_found() -> None:
    assert wrong([], [hold(101, 131)]) == []
    assert wrong([], [hold(90, 131)]) == [held(41, "00:01:30", "00:02:11")]
    assert wrong([interval(10, 20)], [hold(10, 20), hold(490)]) == [held(10, "00:08:10", "00:08:20")]


def test_a_hold_may_be_too_short_to_be_billed() -> None:
    assert wrong([], [hold(200, 200 + UNORDERED_S)]) == []
    assert wrong([], [hold(200, 202)]) == [held(2, "00:03:20", "00:03:22")]


def test_what_the_witness_could_not_follow_is_neither_held_nor_free() -> None:
    span = Hold((200.0, 210.0), (230.0, 240.0))
    assert wrong([interval(200, 240)], [span]) == wrong([interval(210, 230)], [span]) == []
    assert wrong([interval(214, 230)], [span]) == [held(4, "00:03:30", "00:03:34")]
