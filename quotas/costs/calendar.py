"""The calendar of a time zone: the days, weeks and months that windows and steps are made of. Pure.

Moments are in UTC. A day begins at the first moment that has its date, so it may have 23, 24 or 25 hours.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import IntEnum
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

ONE_DAY = timedelta(days=1)


class Weekday(IntEnum):
    """The days of a week, numbered as ``date.weekday`` does."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


@dataclass(frozen=True)
class Calendar:
    """The days of a time zone, and the weekday on which its weeks begin."""

    zone: tzinfo = UTC
    week_start: Weekday = Weekday.MONDAY

    def day_of(self, moment: datetime) -> date:
        """Return the date at a moment."""
        return moment.astimezone(self.zone).date()

    def start_of(self, day: date) -> datetime:
        """Return the moment at which a date begins."""
        return datetime.combine(day, time(), self.zone).astimezone(UTC)

    def week_of(self, day: date) -> date:
        """Return the first day of the week of a date."""
        return day - (day.weekday() - self.week_start) % 7 * ONE_DAY

    def hour_of(self, moment: datetime) -> datetime:
        """Return the start of the hour that contains a moment, by the clock of the zone."""
        local = moment.astimezone(self.zone)
        into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        return moment.astimezone(UTC) - into


UTC_CALENDAR = Calendar()


def month_of(day: date) -> date:
    """Return the first day of the month of a date."""
    return day.replace(day=1)


def months_later(month: date, count: int) -> date:
    """Return the first day of the month that is so many months after the one that begins with ``month``."""
    year, index = divmod(month.year * 12 + month.month - 1 + count, 12)
    return date(year, index + 1, 1)


def months_between(start: date, end: date) -> int:
    """Return how many months begin in ``[start, end)``, both of which are the first day of one."""
    return (end.year - start.year) * 12 + end.month - start.month


def zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database; raise ValueError for a name that it does not have."""
    if name not in _names():
        raise ValueError(f"{name!r} is not an IANA time zone")
    return ZoneInfo(name)


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones() - {"Factory", "localtime"})
