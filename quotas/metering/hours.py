"""Whole hours, days and months in UTC. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def hour_of(moment: datetime) -> datetime:
    """Return the start of the hour that contains the moment."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    """Return the midnight at which the day of the moment begins."""
    return hour_of(moment).replace(hour=0)


def month_of(moment: datetime) -> datetime:
    """Return the midnight at which the month of the moment begins."""
    return day_of(moment).replace(day=1)


def next_month(month: datetime) -> datetime:
    """Return the start of the month after the one that begins then."""
    return month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)


def hours_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the hours that begin in ``[start, end)``, oldest first; ``start`` is the start of one."""
    while start < end:
        yield start
        start += HOUR


def midnights(start: datetime, end: datetime) -> list[datetime]:
    """Return the two bounds and every midnight UTC between them, in order."""
    edges, midnight = [start], day_of(start) + DAY
    while midnight < end:
        edges.append(midnight)
        midnight += DAY
    return [*edges, end]
