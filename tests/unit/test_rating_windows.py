"""The window grammar."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.errors import Invalid
from quotas.costs.rating import Window
from quotas.costs.windows import midnights, parse

NOW = datetime(2026, 11, 19, 15, 30, tzinfo=UTC)  # a Thursday


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", day(11, 19), day(11, 20)),
        ("yesterday", day(11, 18), day(11, 19)),
        ("7d", day(11, 13), day(11, 20)),
        ("30d", day(10, 21), day(11, 20)),
        ("lastweek", day(11, 9), day(11, 16)),
        ("month", day(11, 1), day(12, 1)),
        ("lastmonth", day(10, 1), day(11, 1)),
        ("2026-11-01T00:00:00Z,2026-11-02T12:00:00+02:00", day(11, 1), datetime(2026, 11, 2, 10, tzinfo=UTC)),
        ("2026-11-01,2026-11-08", day(11, 1), day(11, 8)),
    ],
)
def test_windows(text, start, end):
    assert parse(text, NOW) == Window(start, end)


def test_months_of_any_length_and_the_turn_of_the_year():
    assert parse("month", day(12, 31)) == Window(day(12, 1), day(1, 1, 2027))
    assert parse("lastmonth", day(1, 31, 2027)) == Window(day(12, 1), day(1, 1, 2027))
    assert parse("month", day(2, 28)) == Window(day(2, 1), day(3, 1))


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "0d", "-7d", "7", "99999d", "4000d", "today,", ",", "a,b"),
        "2026-11-02,2026-11-01",
        "2026-11-01,2026-11-01",
        "2026-11-01T00:00:00,2026-11-02T00:00:00",
        "2026-11-01,2026-11-02,2026-11-03",
        "2026-13-01,2026-14-01",
        "0001-01-01T00:00:00+14:00,today",
        "0001-01-01,9999-12-31",
    ],
)
def test_any_other_text_is_answered_with_what_works(text):
    with pytest.raises(Invalid) as caught:
        parse(text, NOW)
    (message,) = caught.value.errors["window"]
    assert "today, yesterday, 7d" in message


def test_midnights_cut_a_window_into_days():
    start, end = day(11, 1) + timedelta(hours=12), day(11, 3) + timedelta(hours=6)
    assert midnights(Window(start, end)) == [start, day(11, 2), day(11, 3), end]
    assert midnights(Window(day(11, 1), day(11, 2))) == [day(11, 1), day(11, 2)]
