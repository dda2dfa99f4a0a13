"""The window grammar: `today yesterday 7d lastweek month lastmonth <t0>,<t1>`. UTC, half-open.

As in OpenCost, with two differences: weeks start on Monday (ISO 8601), and every window is half-open. `today`, `7d` and
`month` reach to the end of the day or month, so their end may be in the future, where nothing is charged yet.
"""

import re
from datetime import UTC, datetime, time

from portal.core import rfc3339
from portal.core.errors import Invalid
from quotas.costs.rating import Window
from quotas.metering import hours
from quotas.metering.hours import DAY

MAX_DAYS = 3660
DAY_ALONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
WORKS = (
    "today, yesterday, 7d (any number of days), lastweek, month, lastmonth, "
    "or two times as 2026-11-01T00:00:00Z,2026-11-08T00:00:00Z"
)


def parse(text: str, now: datetime) -> Window:
    """Return the window that `text` names at `now`; raise Invalid, with examples, for any other text."""
    today = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    named = _named(text, today)
    window = named or _pair(text)
    if window.end <= window.start:
        raise _invalid("It ends before it starts.")
    if window.end - window.start > MAX_DAYS * DAY:
        raise _invalid(f"It is longer than {MAX_DAYS} days.")
    return window


def midnights(window: Window) -> list[datetime]:
    """Return the bounds of the window and every midnight UTC between them, in order."""
    return hours.midnights(window.start, window.end)


def _named(text: str, today: datetime) -> Window | None:
    month = today.replace(day=1)
    monday = today - today.weekday() * DAY
    match text:
        case "today":
            return Window(today, today + DAY)
        case "yesterday":
            return Window(today - DAY, today)
        case "lastweek":
            return Window(monday - 7 * DAY, monday)
        case "month":
            return Window(month, (month + 31 * DAY).replace(day=1))
        case "lastmonth":
            return Window((month - DAY).replace(day=1), month)
    if re.fullmatch(r"[1-9]\d{0,3}d", text):
        count = min(int(text[:-1]), MAX_DAYS + 1)
        return Window(today + DAY - count * DAY, today + DAY)
    return None


def _pair(text: str) -> Window:
    start, comma, end = text.partition(",")
    if not comma:
        raise _invalid(f"{text!r} is no window.")
    return Window(_moment(start.strip()), _moment(end.strip()))


def _moment(text: str) -> datetime:
    """Return an RFC 3339 time with its offset, or a date, which means its midnight in UTC."""
    try:
        if DAY_ALONE.fullmatch(text):
            return datetime.combine(rfc3339.day(text), time(), UTC)
        return rfc3339.time(text)
    except ValueError as error:
        has_no_offset = re.search(r"T[0-9:.]+$", text)
        why = "has no offset; end it with Z for UTC" if has_no_offset else "is no time"
        raise _invalid(f"{text!r} {why}.") from error


def _invalid(why: str) -> Invalid:
    return Invalid({"window": [f"{why} Use one of {WORKS}."]})
