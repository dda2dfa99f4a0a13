"""Reads times as RFC 3339 writes them. Python's own parser also takes week dates and other forms of ISO 8601."""

import re
from datetime import UTC, date, datetime

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = re.compile(_DATE + r"[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
_DAY = re.compile(_DATE)


def time(text: str) -> datetime:
    """Return a time with its offset, in UTC; raise ValueError for what is none."""
    if not _TIME.fullmatch(text):
        raise ValueError("no RFC 3339 time with its offset")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no time that can be stored") from error


def day(text: str) -> date:
    """Return a date; raise ValueError for what is none."""
    if not _DAY.fullmatch(text):
        raise ValueError("no date")
    return date.fromisoformat(text)
