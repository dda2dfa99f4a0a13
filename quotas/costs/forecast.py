"""The rule that forecasts what a period will cost. Pure. Fractions in, Fractions out; the caller rounds.

Each part of a day that remains costs what running holds are committed to in it, or what such a day usually costs, if
that is more: the difference is new use. So committed use is never expected once more. The usual cost is the median of
the last eight like weekdays, by the hour, since days may have 23 or 25 hours. Past days are valued at the prices of the
part that remains. docs/adr/0042 says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from statistics import median

from quotas.costs.calendar import ONE_DAY, Calendar
from quotas.costs.rating import MICROSECOND, MICROSECONDS_PER_HOUR

WEEK = 7
LIKE_WEEKDAYS = 8
MIN_DAYS = 14
MAX_DAYS = LIKE_WEEKDAYS * WEEK
LOW, HIGH = Fraction(1, 10), Fraction(9, 10)
ZERO = Fraction(0)

Key = tuple[str, str]
"""Flavor and offering, on which a price depends."""
GpuHours = Mapping[Key, Fraction]
Prices = Mapping[Key, Fraction]
"""The price of a GPU-hour. What has none is absent, and has no cost."""


@dataclass(frozen=True)
class DayPart:
    """The time ``[start, end)``, all of it on one date of a time zone."""

    date: date
    start: datetime
    end: datetime

    @property
    def hours(self) -> Fraction:
        return Fraction((self.end - self.start) // MICROSECOND, MICROSECONDS_PER_HOUR)


@dataclass(frozen=True)
class PastDay:
    """A whole day, and the GPU-hours that were used in it.

    ``carried[n]`` are those of them whose holds already ran when the day n days earlier began. What is not given is
    zero.
    """

    time: DayPart
    used: GpuHours
    carried: Sequence[GpuHours] = ()


@dataclass(frozen=True)
class RemainingPart:
    """A part of a day that remains: what running holds are committed to in it, and the prices in force in it."""

    time: DayPart
    committed: Fraction
    prices: Prices


@dataclass(frozen=True)
class Forecast:
    """What the time that remains will cost: ``committed``, and what is ``expected`` beyond it.

    By past errors the sum of both is at most ``below`` too high and ``above`` too low, in eight of ten cases.
    """

    committed: Fraction
    expected: Fraction
    below: Fraction
    above: Fraction


def day_parts(start: datetime, end: datetime, calendar: Calendar, cuts: Sequence[datetime] = ()) -> list[DayPart]:
    """Return ``[start, end)`` cut where a day of the calendar begins, and at the ``cuts`` that are within it."""
    edges, day = {start, end, *(cut for cut in cuts if start < cut < end)}, calendar.day_of(start) + ONE_DAY
    while (midnight := calendar.start_of(day)) < end:
        edges.add(midnight)
        day += ONE_DAY
    return [DayPart(calendar.day_of(since), since, until) for since, until in pairwise(sorted(edges)) if since < until]


def forecast(history: Sequence[PastDay], remaining: Sequence[RemainingPart]) -> Forecast | None:
    """Return the forecast of the time that remains; None if there are fewer than MIN_DAYS days of history.

    ``history`` are days without a gap, oldest first, until the day before that in which the first part remains. Of
    these the last MAX_DAYS count.
    """
    known = history[-MAX_DAYS:]
    if len(known) < MIN_DAYS:
        return None
    committed = expected = ZERO
    for part in remaining:
        usual = _usual_rate(known, part.time.date, part.prices) * part.time.hours
        committed += part.committed
        expected += max(ZERO, usual - part.committed)
    errors = backtest(known, len({part.time.date for part in remaining}), remaining[0].prices) if remaining else [ZERO]
    hours = sum((part.time.hours for part in remaining), ZERO)
    low, high = (quantile(errors, part) * hours for part in (LOW, HIGH))
    return Forecast(committed, expected, min(max(ZERO, -low), committed + expected), max(ZERO, high))


def backtest(known: Sequence[PastDay], days: int, prices: Prices) -> list[Fraction]:
    """Return what the rule would have erred by, as cost of an hour, at the start of each past day with a week before it
    and enough days from it on.

    It forecasts as many days as remain, but at most half of those that can be tested, so that there are several cases.
    What ran at that moment counts as committed for as long as it ran.
    """
    length = max(1, min(days, (len(known) - WEEK) // 2))
    costs = [_value(day.used, prices) for day in known]
    return [_error(known, costs, at, length, prices) for at in range(WEEK, len(known) - length + 1)]


def quantile(values: Sequence[Fraction], part: Fraction) -> Fraction:
    """Return the value below which a part of the values lies, interpolated linearly (Hyndman and Fan, definition 7)."""
    ordered, place = sorted(values), part * (len(values) - 1)
    below, above = ordered[floor(place)], ordered[ceil(place)]
    return below + (above - below) * (place - floor(place))


def unpriced(history: Sequence[PastDay], remaining: Sequence[RemainingPart]) -> set[Key]:
    """Return what was used on the days that count and has no price in some part that remains."""
    used = {key for day in history[-MAX_DAYS:] for key, hours in day.used.items() if hours}
    return {key for key in used for part in remaining if key not in part.prices}


def _error(known: Sequence[PastDay], costs: Sequence[Fraction], at: int, length: int, prices: Prices) -> Fraction:
    """Return by how much the ``length`` days from day ``at`` on cost more than they were forecast, for an hour."""
    block = range(at, at + length)
    hours = sum((known[place].time.hours for place in block), ZERO)
    usual = {day: _usual_rate(known[:at], day, prices) for day in (known[place].time.date for place in block[:WEEK])}
    rates = {day.weekday(): rate for day, rate in usual.items()}
    error = ZERO
    for place in block:
        day = known[place]
        carried = day.carried[place - at] if place - at < len(day.carried) else {}
        error += costs[place] - max(_value(carried, prices), rates[day.time.date.weekday()] * day.time.hours)
    return error / hours


def _usual_rate(before: Sequence[PastDay], day: date, prices: Prices) -> Fraction:
    """Return what an hour of such a weekday usually costs at these prices."""
    like = [past for past in before if past.time.date.weekday() == day.weekday()][-LIKE_WEEKDAYS:]
    return median(_value(past.used, prices) / past.time.hours for past in like)


def _value(used: GpuHours, prices: Prices) -> Fraction:
    return sum(_priced(used, prices), ZERO)


def _priced(used: GpuHours, prices: Prices) -> Iterator[Fraction]:
    return (hours * prices[key] for key, hours in used.items() if key in prices)
