"""The rules of what could be saved."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.costs.calendar import UTC_CALENDAR, Calendar, zone
from quotas.costs.rating import Window
from quotas.costs.savings_rules import PodUse, QuotaStep, cut, idle_since, quiet_times, unused_quotas

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def at(hours: float) -> datetime:
    return MONDAY + timedelta(hours=hours)


def test_nights_and_the_weekend_are_quiet():
    spans = quiet_times(Window(at(0), at(24 * 7)), UTC_CALENDAR)
    assert spans == [
        (at(0), at(6)),
        *((at(day * 24 - 4), at(day * 24 + 6)) for day in range(1, 5)),
        (at(4 * 24 + 20), at(7 * 24)),
    ]


def test_quiet_times_are_by_the_clock_of_the_zone_with_its_long_night():
    berlin = Calendar(zone("Europe/Berlin"))
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)  # Sunday 0:00, on which clocks are set back
    assert quiet_times(Window(start, start + timedelta(hours=48)), berlin) == [
        (start, datetime(2026, 10, 26, 5, tzinfo=UTC)),
        (datetime(2026, 10, 26, 19, tzinfo=UTC), start + timedelta(hours=48)),
    ]


@given(
    st.integers(0, 24 * 400), st.integers(1, 24 * 21), st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
)
def test_quiet_times_are_in_the_window_in_order_and_apart(start: int, hours: int, name: str):
    window = Window(at(start), at(start + hours))
    moments = [moment for span in quiet_times(window, Calendar(zone(name))) for moment in span]
    assert all(one < other for one, other in pairwise(moments))
    assert all(window.start <= moment <= window.end for moment in moments)


def test_quiet_times_are_cut_where_prices_begin():
    assert cut([(at(0), at(6)), (at(20), at(30))], [at(0), at(3), at(8), at(30)]) == [
        *((at(0), at(3)), (at(3), at(6)), (at(20), at(30))),
    ]


@pytest.mark.parametrize(
    ("use", "since"),
    [
        (None, at(0)),
        (PodUse(at(5), is_running=False), at(5)),
        (PodUse(at(-5), is_running=False), at(0)),
        (PodUse(at(5), is_running=True), None),
        (PodUse(None, is_running=True), None),
    ],
)
def test_a_hold_is_idle_since_its_last_pod_or_its_start(use: PodUse | None, since: datetime | None):
    assert idle_since(at(0), use) == since


def quota(hours: float, nominal: int, pool: str = "l40s/gpu") -> QuotaStep:
    return QuotaStep(at(hours), "vision", "local", "l40s", pool, nominal)


@pytest.mark.parametrize(
    ("changes", "is_unused"),
    [
        ([quota(-1, 4)], True),
        ([quota(-2, 0), quota(-1, 4), quota(5, 2)], True),
        ([quota(5, 4)], False),
        ([quota(-1, 4), quota(5, 0), quota(6, 4)], False),
        ([quota(-1, 0, "l40s/one"), quota(-1, 1, "l40s/other")], True),
    ],
)
def test_quota_is_unused_if_it_was_guaranteed_all_the_time(changes: list[QuotaStep], is_unused: bool):
    assert bool(unused_quotas(changes, [], Window(at(0), at(24)))) == is_unused


def test_quota_of_a_flavor_that_was_held_is_used():
    held = [("vision", "local", "l40s")]
    assert unused_quotas([quota(-1, 4)], held, Window(at(0), at(24))) == []
    assert unused_quotas([quota(-1, 4)], [("vision", "local", "h100")], Window(at(0), at(24))) == held
