"""How long an allocation has been held, when its time is over, and until when it waits. Pure.

Asked hours are time held, summed over evictions; an asked date stays as it is. Intervals are half-open and in UTC, and
lengths are exact to the microsecond.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MICROSECOND = timedelta(microseconds=1)
NONE = timedelta(0)
TIME_OVER, GAVE_UP = "ends_at", "gave_up_waiting"
Interval = tuple[datetime, datetime | None]
"""``[start, end)``; the end is None while it lasts."""


@lru_cache(maxsize=1024)
def length(hours: Decimal) -> timedelta:
    """Return so many hours, rounded to the microsecond. Kept, since a list asks three times for each row."""
    return round(Fraction(hours) * 3600 * 10**6) * MICROSECOND


def hours(span: timedelta) -> Fraction:
    """Return the span in hours."""
    return Fraction(span // MICROSECOND, 3600 * 10**6)


def seconds(span: timedelta) -> Decimal:
    """Return the span in seconds."""
    return Decimal(span // MICROSECOND).scaleb(-6)


def in_words(hours: Decimal) -> str:
    """Return hours in words: ``1 hour``, ``1.5 hours``."""
    text = f"{hours:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "1 hour" if text == "1" else f"{text} hours"


@dataclass(frozen=True)
class HeldTime:
    """How long an allocation was held: ``before`` is the sum of its ended holds, of which the last ended at ``until``.

    ``since`` is the start of the present hold, None if it is not held. ``until`` is None if no hold has ended.
    """

    before: timedelta = NONE
    until: datetime | None = None
    since: datetime | None = None

    def with_intervals(self, intervals: Iterable[Interval]) -> "HeldTime":
        """Return the time after what the ledger has is added. What ended at or before ``until`` is counted already.

        Several slots that were held at once count once.
        """
        before, until, since = self.before, self.until, None
        for start, end in sorted(intervals, key=lambda one: one[0]):
            begin = start if until is None else max(start, until)
            if end is None:
                since = begin
                break
            if end >= begin:
                before, until = before + (end - begin), end
        return HeldTime(before, until, since)

    def total(self, now: datetime) -> timedelta:
        """Return the time held until now, with the present hold."""
        return self.before + (max(NONE, now - self.since) if self.since else NONE)


class Due(NamedTuple):
    """When time alone ends an allocation, and why: TIME_OVER, or GAVE_UP waiting to be held."""

    at: datetime
    reason: str


@dataclass(frozen=True)
class AllocationTime:
    """The time that was asked for, and what of it was held.

    ``ends_at`` is None if ``hours`` were asked. ``give_up_at`` ends the first wait, from ``begins_at`` on; after a hold
    that ended, it waits as long again. None: it waits without end.
    """

    begins_at: datetime
    hours: Decimal | None = None
    ends_at: datetime | None = None
    give_up_at: datetime | None = None
    held: HeldTime = HeldTime()

    @property
    def span(self) -> timedelta:
        """The longest time for which it is held, as asked."""
        if self.hours is not None:
            return length(self.hours)
        return self.ends_at - self.begins_at if self.ends_at else NONE

    @property
    def left(self) -> timedelta | None:
        """The asked hours that its ended holds have left; None if a date was asked."""
        return None if self.hours is None else max(NONE, self.span - self.held.before)

    def left_at(self, now: datetime) -> timedelta | None:
        """Return the asked hours that are left now; None if a date was asked."""
        return None if self.hours is None else max(NONE, self.span - self.held.total(now))

    @property
    def end(self) -> datetime | None:
        """When its time is over: the asked date, or the end of its hours from the present hold on; None until held."""
        if self.left is None:
            return self.ends_at
        return None if self.held.since is None else self.held.since + self.left

    @property
    def over_since(self) -> datetime | None:
        """Since when its time is over, whether or not it is still held; None if it is not over by time alone."""
        if self.left == NONE and self.held.since is None and self.held.until is not None:
            return self.held.until - (self.held.before - self.span)
        return self.end

    @property
    def waits_until(self) -> datetime | None:
        """When its wait is over, counted from its start or from the end of its last hold."""
        if self.give_up_at is None or self.held.until is None:
            return self.give_up_at
        return self.held.until + (self.give_up_at - self.begins_at)

    def extended(self, more: Decimal) -> "AllocationTime":
        """Return the time with so many hours more: held, or until a later date."""
        if self.hours is not None:
            return replace(self, hours=self.hours + more)
        return replace(self, ends_at=self.ends_at + length(more) if self.ends_at else None)

    def in_words(self) -> str:
        """Return what was asked in words: ``for 8 hours held``, ``until 2026-03-01 12:00 UTC``."""
        return f"until {self.ends_at:%Y-%m-%d %H:%M} UTC" if self.hours is None else f"for {in_words(self.hours)} held"

    def expected_end(self, now: datetime) -> datetime:
        """Return when its time is over; if it is not held yet, as if it were held now, or at its later start."""
        return max(now, self.end or max(now, self.begins_at) + (self.left or NONE))

    @property
    def due(self) -> Due | None:
        """When time alone ends it, as things are now; None if nothing does."""
        if self.left == NONE and self.held.since is None and self.held.until is not None:
            return Due(self.held.until, TIME_OVER)
        found = [Due(self.end, TIME_OVER)] if self.end else []
        if self.held.since is None and self.waits_until is not None:
            found.append(Due(self.waits_until, GAVE_UP))
        return min(found, default=None)
