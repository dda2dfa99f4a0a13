"""The steps of a window."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.errors import Invalid
from quotas.costs.calendar import Calendar, Weekday, zone
from quotas.costs.questions import Question
from quotas.costs.rating import Window
from quotas.costs.steps import MAX_STEPS, Step, edges

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Cairo",
)


def day(month: int, number: int, hour: int = 0, year: int = 2026) -> datetime:
    return datetime(year, month, number, hour, tzinfo=UTC)


def test_days_cut_a_window_at_midnight():
    window = Window(day(11, 1, 12), day(11, 3, 6))
    assert edges(window, Step.DAY) == [day(11, 1, 12), day(11, 2), day(11, 3), day(11, 3, 6)]
    assert edges(Window(day(11, 1), day(11, 2)), Step.DAY) == [day(11, 1), day(11, 2)]


def test_all_is_one_step():
    assert edges(Window(day(1, 1), day(12, 1)), Step.ALL) == [day(1, 1), day(12, 1)]


def test_parts_of_a_question_have_its_steps_where_clocks_change_by_half_an_hour():
    calendar = Calendar(zone("Australia/Lord_Howe"))
    question = Question(Window(day(4, 1), day(4, 9)), day(5, 1), step=Step.HOUR, calendar=calendar)
    parts = list(question.parts(31))
    assert [bounds for part in parts for bounds in pairwise(part.edges)] == list(pairwise(question.edges))
    assert [part.window for part in parts] == [Window(part.edges[0], part.edges[-1]) for part in parts]


def test_a_week_begins_on_the_day_that_is_chosen():
    window = Window(day(11, 3), day(11, 20))
    assert edges(window, Step.WEEK)[1:-1] == [day(11, 9), day(11, 16)]
    assert edges(window, Step.WEEK, Calendar(week_start=Weekday.SUNDAY))[1:-1] == [day(11, 8), day(11, 15)]


def test_months_are_as_long_as_they_are():
    assert edges(Window(day(1, 15), day(4, 1)), Step.MONTH) == [day(1, 15), day(2, 1), day(3, 1), day(4, 1)]


@pytest.mark.parametrize(("start", "hours"), [(day(3, 28, 23), 23), (day(10, 24, 22), 25)])
def test_a_day_on_which_clocks_change_is_one_step(start, hours):
    berlin = Calendar(zone("Europe/Berlin"))
    found = edges(Window(start, start + timedelta(days=2)), Step.DAY, berlin)
    assert found[1] - found[0] == timedelta(hours=hours)


def test_hours_begin_at_half_past_where_the_time_zone_is_half_an_hour_off():
    found = edges(Window(day(11, 1, 1), day(11, 1, 3)), Step.HOUR, Calendar(zone("Asia/Kolkata")))
    assert [moment.minute for moment in found] == [0, 30, 30, 0]


@pytest.mark.parametrize("year", [1, 9999])
def test_days_of_no_calendar_are_refused(year):
    window = Window(day(1, 1, year=year), day(1, 3, year=year))
    assert edges(window, Step.ALL, Calendar(zone("America/New_York"))) == [window.start, window.end]
    with pytest.raises(Invalid) as caught:
        edges(window, Step.DAY, Calendar(zone("America/New_York")))
    assert "window" in caught.value.errors


def test_too_many_hours_are_refused():
    start = day(1, 1)
    assert len(edges(Window(start, start + MAX_STEPS * timedelta(hours=1)), Step.HOUR)) == MAX_STEPS + 1
    with pytest.raises(Invalid) as caught:
        edges(Window(start, start + (MAX_STEPS + 1) * timedelta(hours=1)), Step.HOUR)
    assert "accumulate" in caught.value.errors


@given(
    st.timedeltas(timedelta(), timedelta(days=7000)),
    st.timedeltas(timedelta(minutes=1), timedelta(days=40)),
    st.sampled_from([step for step in Step if step is not Step.ALL]),
    st.sampled_from(ZONES),
)
def test_steps_are_a_partition_and_begin_by_the_clock_of_the_time_zone(since, length, step, name):
    start = day(1, 1, year=2009) + since
    window = Window(start, start + length)
    calendar = Calendar(zone(name))
    found = edges(window, step, calendar)
    assert (found[0], found[-1]) == (window.start, window.end)
    assert all(a < b for a, b in pairwise(found))
    if step is not Step.HOUR:
        firsts = [moment.astimezone(calendar.zone) for moment in found[1:-1]]
        before = [(moment - timedelta(microseconds=1)).astimezone(calendar.zone) for moment in found[1:-1]]
        assert all(a.date() < b.date() for a, b in zip(before, firsts, strict=True))
        assert all(one.weekday() == 0 for one in firsts if step is Step.WEEK)
        assert all(one.day == 1 for one in firsts if step is Step.MONTH)
