"""The window grammar: `today yesterday 15m 24h 7d 2w week lastweek month lastmonth`, `7d offset 1d`, `<t0>,<t1>`.

As OpenCost reads it (core/pkg/opencost/window.go), with these differences: weeks start on Monday (ISO 8601) unless
another day is chosen, `week` and `month` reach to the end of the week or month, `15m` ends now, and every window is
half-open. Named windows are of a calendar: that of a time zone, UTC unless another is chosen. `today`, `24h`, `7d` and
`month` have the present hour, day or month whole, so their end may be in the future, where nothing is charged yet. One
with an offset ends so long before now.
"""

import re
from datetime import UTC, date, datetime, timedelta

from portal.core import rfc3339
from portal.core.errors import Invalid
from portal.core.quotation import quoted
from quotas.costs.calendar import UTC_CALENDAR, Calendar, month_of, months_between, months_later
from quotas.costs.rating import Window
from quotas.metering.hours import DAY, HOUR

MAX_DAYS = 3660
MINUTE = timedelta(minutes=1)
FIRST_YEAR, LAST_YEAR = 1970, 2999
DAY_ALONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LENGTH = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
OFFSET = re.compile(r"([1-9][0-9]{0,4})([mhdw])[ +]offset[ +]([1-9][0-9]{0,4})([mhdw])")
"""With a + where a URL had a space."""
UNIX_SECONDS = re.compile(r"([0-9]{1,11})[,-]([0-9]{1,11})")
UNITS = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
WORKS = (
    "today, yesterday, 7d (any number of m, h, d or w), 7d offset 1d, week, lastweek, month, lastmonth, "
    "or two times as 2026-11-01T00:00:00Z,2026-11-08T00:00:00Z or in Unix seconds"
)


def parse(text: str, now: datetime, calendar: Calendar = UTC_CALENDAR) -> Window:
    """Return the window that `text` names at `now`; raise Invalid, with examples, for any other text."""
    window = _named(text, now, calendar) or _earlier(text, now) or _unix_seconds(text) or _pair(text, calendar)
    if window.end == window.start:
        raise _invalid("It is empty, since the end is not part of a window: 2026-11-01,2026-11-02 is one day.")
    if window.end < window.start:
        raise _invalid("It ends before it starts.")
    if window.end - window.start > MAX_DAYS * DAY + 2 * HOUR:  # clocks may change between
        raise _invalid(f"It is longer than {MAX_DAYS} days.")
    return window


def check_years(window: Window) -> None:
    """Raise Invalid unless a calendar has the days, weeks and months of the window, and of the one before it."""
    if window.start.year < FIRST_YEAR or window.end.year > LAST_YEAR:
        raise _invalid(f"It is not between the years {FIRST_YEAR} and {LAST_YEAR}.")


def previous(window: Window, now: datetime, calendar: Calendar = UTC_CALENDAR) -> Window:
    """Return the window before this one: as many months if it is of whole months, as many days if of whole days, else
    as much time. Of a window that has not ended, as much of the one before as has passed of it.
    """
    check_years(window)
    start, end = window.start - (window.end - window.start), window.start
    first, last = calendar.day_of(window.start), calendar.day_of(window.end)
    if (calendar.start_of(first), calendar.start_of(last)) == (window.start, window.end):
        start = calendar.start_of(first - (last - first))
        if first.day == last.day == 1:
            start = calendar.start_of(months_later(first, -months_between(first, last)))
    return Window(start, min(end, start + (now - window.start)) if window.start < now < window.end else end)


def _named(text: str, now: datetime, calendar: Calendar) -> Window | None:
    today = calendar.day_of(now)
    month, week = month_of(today), calendar.week_of(today)
    match text:
        case "today":
            return _days(calendar, today, today + DAY)
        case "yesterday":
            return _days(calendar, today - DAY, today)
        case "week":
            return _days(calendar, week, week + 7 * DAY)
        case "lastweek":
            return _days(calendar, week - 7 * DAY, week)
        case "month":
            return _days(calendar, month, months_later(month, 1))
        case "lastmonth":
            return _days(calendar, months_later(month, -1), month)
    if length := LENGTH.fullmatch(text):
        return _last(int(length[1]), length[2], now, calendar)
    return None


def _last(count: int, unit: str, now: datetime, calendar: Calendar) -> Window:
    """Return the window of the present hour or day and those before it, so many in all; of minutes, up to now."""
    if unit == "m":
        return Window(now - count * MINUTE, now)
    if unit == "h":
        end = calendar.hour_of(now) + HOUR
        return Window(end - min(count, (MAX_DAYS + 1) * 24) * HOUR, end)
    tomorrow = calendar.day_of(now) + DAY
    return _days(calendar, tomorrow - min(count * (7 if unit == "w" else 1), MAX_DAYS + 1) * DAY, tomorrow)


def _earlier(text: str, now: datetime) -> Window | None:
    """Return the window of so much time that ended so long ago."""
    if not (found := OFFSET.fullmatch(text)):
        return None
    length, offset = int(found[1]) * UNITS[found[2]], int(found[3]) * UNITS[found[4]]
    if offset > MAX_DAYS * DAY:
        raise _invalid(f"Its offset is longer than {MAX_DAYS} days.")
    end = now - offset
    return Window(end - min(length, (MAX_DAYS + 1) * DAY), end)


def _unix_seconds(text: str) -> Window | None:
    if not (found := UNIX_SECONDS.fullmatch(text)):
        return None
    try:
        start, end = (datetime.fromtimestamp(int(seconds), UTC) for seconds in found.groups())
    except (OverflowError, ValueError) as error:
        raise _invalid(f"{quoted(text)} is not two valid times.") from error
    return Window(start, end)


def _days(calendar: Calendar, start: date, end: date) -> Window:
    return Window(calendar.start_of(start), calendar.start_of(end))


def _pair(text: str, calendar: Calendar) -> Window:
    start, comma, end = text.partition(",")
    if not comma:
        raise _invalid(f"{quoted(text)} is not a valid window.")
    return Window(_moment(start.strip(), calendar), _moment(end.strip(), calendar))


def _moment(text: str, calendar: Calendar) -> datetime:
    """Return an RFC 3339 time with its offset, or a date, which means the start of the day."""
    try:
        if DAY_ALONE.fullmatch(text):
            return calendar.start_of(rfc3339.day(text))
        return rfc3339.time(text)
    except (OverflowError, ValueError) as error:
        has_no_offset = re.search(r"T[0-9:.]+$", text)
        why = "has no offset; end it with Z for UTC" if has_no_offset else "is not a valid time"
        raise _invalid(f"{quoted(text)} {why}.") from error


def _invalid(why: str) -> Invalid:
    return Invalid({"window": [f"{why} Use one of {WORKS}."]})
