"""The window grammar."""

from datetime import UTC, datetime

import pytest

from portal.core.errors import Invalid
from quotas.costs.calendar import Calendar, Weekday, zone
from quotas.costs.rating import Window
from quotas.costs.windows import parse, previous

NOW = datetime(2026, 11, 19, 15, 30, tzinfo=UTC)  # a Thursday


def day(month: int, number: int, year: int = 2026, hour: int = 0) -> datetime:
    return datetime(year, month, number, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", day(11, 19), day(11, 20)),
        ("yesterday", day(11, 18), day(11, 19)),
        ("7d", day(11, 13), day(11, 20)),
        ("30d", day(10, 21), day(11, 20)),
        ("24h", datetime(2026, 11, 18, 16, tzinfo=UTC), datetime(2026, 11, 19, 16, tzinfo=UTC)),
        ("15m", datetime(2026, 11, 19, 15, 15, tzinfo=UTC), NOW),
        ("90m", datetime(2026, 11, 19, 14, tzinfo=UTC), NOW),
        ("2w", day(11, 6), day(11, 20)),
        ("week", day(11, 16), day(11, 23)),
        ("lastweek", day(11, 9), day(11, 16)),
        ("month", day(11, 1), day(12, 1)),
        ("lastmonth", day(10, 1), day(11, 1)),
        ("2026-11-01T00:00:00Z,2026-11-02T12:00:00+02:00", day(11, 1), datetime(2026, 11, 2, 10, tzinfo=UTC)),
        ("2026-11-01,2026-11-08", day(11, 1), day(11, 8)),
        ("7d offset 1d", datetime(2026, 11, 11, 15, 30, tzinfo=UTC), datetime(2026, 11, 18, 15, 30, tzinfo=UTC)),
        ("45m+offset+15m", datetime(2026, 11, 19, 14, 30, tzinfo=UTC), datetime(2026, 11, 19, 15, 15, tzinfo=UTC)),
        ("1h offset 1w", datetime(2026, 11, 12, 14, 30, tzinfo=UTC), datetime(2026, 11, 12, 15, 30, tzinfo=UTC)),
        ("1793491200,1793577600", day(11, 1), day(11, 2)),
        ("1793491200-1793577600", day(11, 1), day(11, 2)),
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
        *("88000h", "600w", "0m", "7M", "7s"),
        *("7d offset", "7d offset 99999d", "99999d offset 1d", "offset 1d", "7d offset 0d"),
        *("1793491200", "1793491200,", "99999999999,99999999999", "1793577600,1793491200", "0,99999999999"),
    ],
)
def test_any_other_text_is_answered_with_what_works(text):
    with pytest.raises(Invalid) as caught:
        parse(text, NOW)
    (message,) = caught.value.errors["window"]
    assert "today, yesterday, 7d" in message


@pytest.mark.parametrize(("last", "why"), [("2026-11-01", "It is empty"), ("2026-10-31", "It ends before it starts")])
def test_a_window_of_no_time_is_told_apart_from_one_that_ends_before_it_starts(last, why):
    with pytest.raises(Invalid) as caught:
        parse(f"2026-11-01,{last}", NOW)
    assert caught.value.errors["window"][0].startswith(why)


def in_zone(name: str, week_start: Weekday = Weekday.MONDAY) -> Calendar:
    return Calendar(zone(name), week_start)


def hours_of(window: Window) -> float:
    return (window.end - window.start).total_seconds() / 3600


@pytest.mark.parametrize(
    ("text", "start", "hours"),
    [
        ("2026-03-29,2026-03-30", datetime(2026, 3, 28, 23, tzinfo=UTC), 23),  # clocks go forward
        ("2026-10-25,2026-10-26", datetime(2026, 10, 24, 22, tzinfo=UTC), 25),  # and back
        ("today", datetime(2026, 11, 18, 23, tzinfo=UTC), 24),
        ("month", datetime(2026, 10, 31, 23, tzinfo=UTC), 30 * 24),
        ("lastmonth", datetime(2026, 9, 30, 22, tzinfo=UTC), 31 * 24 + 1),
    ],
)
def test_days_are_those_of_the_time_zone(text, start, hours):
    window = parse(text, NOW, in_zone("Europe/Berlin"))
    assert (window.start, hours_of(window)) == (start, hours)


def test_a_time_with_an_offset_is_the_same_in_every_time_zone():
    text = "2026-11-01T00:00:00Z,2026-11-02T12:00:00+02:00"
    assert parse(text, NOW, in_zone("Asia/Kolkata")) == parse(text, NOW)


def test_an_hour_begins_by_the_clock_of_the_time_zone():
    window = parse("1h", NOW.replace(minute=10), in_zone("Asia/Kolkata"))
    assert window.start == NOW.replace(hour=14, minute=30)


def test_a_day_whose_midnight_is_skipped_begins_at_its_first_moment():
    window = parse("2026-04-24,2026-04-25", NOW, in_zone("Africa/Cairo"))  # 00:00 becomes 01:00
    assert (window.start, hours_of(window)) == (datetime(2026, 4, 23, 22, tzinfo=UTC), 23)


def test_a_week_begins_on_the_day_that_is_chosen():
    assert parse("week", NOW, in_zone("UTC", Weekday.SUNDAY)).start == day(11, 15)
    assert parse("lastweek", NOW, in_zone("UTC", Weekday.SATURDAY)) == Window(day(11, 7), day(11, 14))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", day(11, 17), day(11, 18)),
        ("lastweek", day(11, 2), day(11, 9)),
        ("lastmonth", day(9, 1), day(10, 1)),
        ("2026-01-01,2027-01-01", day(1, 1, 2025), datetime(2025, 11, 19, 15, 30, tzinfo=UTC)),
        ("2025-01-01,2026-01-01", day(1, 1, 2024), day(1, 1, 2025)),
        ("2026-03-01,2026-03-31", day(1, 30), day(3, 1)),
        ("month", day(10, 1), datetime(2026, 10, 19, 15, 30, tzinfo=UTC)),
        ("today", day(11, 18), datetime(2026, 11, 18, 15, 30, tzinfo=UTC)),
        ("2026-11-01T06:00:00Z,2026-11-01T08:00:00Z", day(11, 1, hour=4), day(11, 1, hour=6)),
        ("2027-01-01,2027-01-02", day(12, 31), day(1, 1, 2027)),
    ],
)
def test_the_window_before(text, start, end):
    assert previous(parse(text, NOW), NOW) == Window(start, end)


def test_the_day_before_one_of_25_hours_has_24():
    berlin = in_zone("Europe/Berlin")
    assert hours_of(previous(parse("2026-10-25,2026-10-26", NOW, berlin), NOW, berlin)) == 24


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "Europe", "../UTC", "/etc/passwd", "localtime", "europe/berlin"])
def test_no_other_name_is_a_time_zone(name):
    with pytest.raises(ValueError, match="not an IANA time zone"):
        zone(name)
