"""Computes usage cost exactly. Pure. Fractions in, Fractions out; the caller rounds.

cost = sum over the parts of an interval with one price of GPUs x hours x price per GPU-hour (OpenCost specification,
v0.1, "usage cost of an allocation"). What was used when no price was in force has no cost, and is counted beside it.
All bounds are half-open, so that the costs of adjoining windows add up.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_PER_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Window:
    """`[start, end)`, aware times."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Usage:
    """`gpus` whole-GPU equivalents of a flavor, held in `[start, end)`; `end` is None while they are.

    What is not charged has the price 0.
    """

    flavor: str
    gpus: Fraction
    start: datetime
    end: datetime | None
    is_charged: bool = True


@dataclass(frozen=True)
class Rate:
    """The price of a GPU-hour from `valid_from` until the next rate of the flavor."""

    valid_from: datetime
    per_gpu_hour: Fraction


Rates = Mapping[str, Sequence[Rate]]
"""Rates by flavor, each sorted by `valid_from`. No price is in force before the first, and for a flavor without any."""
FREE = (Rate(datetime.min.replace(tzinfo=UTC), Fraction(0)),)
"""The rates of what is not charged."""


@dataclass(frozen=True)
class RatedUsage:
    """GPU-hours, those of them without a price, and the cost of the others."""

    gpu_hours: Fraction = Fraction(0)
    unpriced_gpu_hours: Fraction = Fraction(0)
    priced_cost: Fraction = Fraction(0)

    @property
    def cost(self) -> Fraction | None:
        """The cost of what has a price; None if something was used and none of it has one."""
        is_unpriced = self.unpriced_gpu_hours and self.unpriced_gpu_hours == self.gpu_hours
        return None if is_unpriced else self.priced_cost

    def __add__(self, other: "RatedUsage") -> "RatedUsage":
        return RatedUsage(
            self.gpu_hours + other.gpu_hours,
            self.unpriced_gpu_hours + other.unpriced_gpu_hours,
            self.priced_cost + other.priced_cost,
        )


def rated(gpu_hours: Fraction, per_gpu_hour: Fraction | None) -> RatedUsage:
    """Return what was used at one price. None is no price in force; 0 is a price."""
    if per_gpu_hour is None:
        return RatedUsage(gpu_hours, unpriced_gpu_hours=gpu_hours)
    return RatedUsage(gpu_hours, priced_cost=gpu_hours * per_gpu_hour)


def rated_usage(intervals: Iterable[Usage], prices: Rates, window: Window | None, now: datetime) -> RatedUsage:
    """Return what was used in `window` (None: ever) and until `now`, up to which open intervals are charged."""
    return _sum([_rated(usage, prices.get(usage.flavor, ()), window, now) for usage in intervals])


def gpu_hours(intervals: Iterable[Usage], window: Window | None, now: datetime) -> Fraction:
    """Return whole-GPU equivalents times hours, over the same time as `rated_usage`."""
    total = Fraction(0)
    for usage in intervals:
        start, end = _bounds(usage, window, now)
        total += usage.gpus * _hours(start, end)
    return total


def rate_at(rates: Sequence[Rate], at: datetime) -> Fraction | None:
    """Return the price in force at `at`, or None before the first."""
    place = bisect_right(rates, at, key=lambda rate: rate.valid_from)
    return rates[place - 1].per_gpu_hour if place else None


def by_price(
    rates: Sequence[Rate], start: datetime, end: datetime, *, is_charged: bool = True
) -> Iterator[tuple[Fraction | None, datetime, datetime]]:
    """Yield the prices in force in ``[start, end)``, each with its part of that time; None is no price. What is not
    charged has the price 0.
    """
    if not is_charged:
        rates = FREE
    place = bisect_right(rates, start, key=lambda rate: rate.valid_from)
    while start < end:
        until = min(end, rates[place].valid_from) if place < len(rates) else end
        yield rates[place - 1].per_gpu_hour if place else None, start, until
        start, place = until, place + 1


def _rated(usage: Usage, rates: Sequence[Rate], window: Window | None, now: datetime) -> RatedUsage:
    start, end = _bounds(usage, window, now)
    parts = by_price(rates, start, end, is_charged=usage.is_charged)
    return _sum([rated(usage.gpus * _hours(since, until), price) for price, since, until in parts])


def _sum(parts: Sequence[RatedUsage]) -> RatedUsage:
    """Return the sum; most sums have one part, and adding fractions takes most of the time."""
    return sum(parts[1:], parts[0]) if parts else RatedUsage()


def _bounds(usage: Usage, window: Window | None, now: datetime) -> tuple[datetime, datetime]:
    end = min(usage.end, now) if usage.end else now
    return (max(usage.start, window.start), min(end, window.end)) if window else (usage.start, end)


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction(max(0, (end - start) // MICROSECOND), MICROSECONDS_PER_HOUR)
