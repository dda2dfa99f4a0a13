"""Computes usage cost exactly. Pure. Fractions in, Fractions out; the caller rounds.

cost = sum over the parts of an interval with one price of GPUs x hours x price per GPU-hour (OpenCost specification,
v0.1, "usage cost of an allocation"). All bounds are half-open, so that the costs of adjoining windows add up.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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
    """`gpus` whole-GPU equivalents of a flavor, held in `[start, end)`; `end` is None while they are."""

    flavor: str
    gpus: Fraction
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class Rate:
    """The price of a GPU-hour from `valid_from` until the next rate of the flavor."""

    valid_from: datetime
    per_gpu_hour: Fraction


Rates = Mapping[str, Sequence[Rate]]
"""Rates by flavor, each sorted by `valid_from`. Before the first, and for a flavor without any, usage costs
nothing.
"""


def cost(intervals: Iterable[Usage], prices: Rates, window: Window | None, now: datetime) -> Fraction:
    """Return the cost of what was used in `window` (None: ever) and until `now`, up to which open intervals are
    charged.
    """
    return sum((_cost(usage, prices.get(usage.flavor, ()), window, now) for usage in intervals), Fraction(0))


def gpu_hours(intervals: Iterable[Usage], window: Window | None, now: datetime) -> Fraction:
    """Return whole-GPU equivalents times hours, over the same time as `cost`."""
    total = Fraction(0)
    for usage in intervals:
        start, end = _bounds(usage, window, now)
        total += usage.gpus * _hours(start, end)
    return total


def rate_at(rates: Sequence[Rate], at: datetime) -> Fraction | None:
    """Return the price in force at `at`, or None before the first."""
    place = bisect_right(rates, at, key=lambda rate: rate.valid_from)
    return rates[place - 1].per_gpu_hour if place else None


def _cost(usage: Usage, rates: Sequence[Rate], window: Window | None, now: datetime) -> Fraction:
    start, end = _bounds(usage, window, now)
    ends = [rate.valid_from for rate in rates[1:]] + [end]
    return sum(
        (
            usage.gpus * rate.per_gpu_hour * _hours(max(start, rate.valid_from), min(end, until))
            for rate, until in zip(rates, ends, strict=False)
        ),
        Fraction(0),
    )


def _bounds(usage: Usage, window: Window | None, now: datetime) -> tuple[datetime, datetime]:
    end = min(usage.end, now) if usage.end else now
    return (max(usage.start, window.start), min(end, window.end)) if window else (usage.start, end)


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction(max(0, (end - start) // MICROSECOND), MICROSECONDS_PER_HOUR)
