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
from math import floor
from typing import Protocol, TypeVar

MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_PER_HOUR = 3_600_000_000
PRICE_UNITS = 10**10
"""A price has as many decimal places."""
ONE = Fraction(1)


@dataclass(frozen=True)
class Window:
    """`[start, end)`, aware times."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Usage:
    """`gpus` whole-GPU equivalents of a flavor, held in `[start, end)`; `end` is None while they are.

    What is not charged has the price 0. The slices are of an offering, and each takes ``slice_share`` of a GPU.
    """

    flavor: str
    gpus: Fraction
    start: datetime
    end: datetime | None
    is_charged: bool = True
    offering: str = ""
    slice_share: Fraction = ONE


@dataclass(frozen=True)
class Rate:
    """The price of a GPU-hour from `valid_from` until the next rate of the flavor; None is none."""

    valid_from: datetime
    per_gpu_hour: Fraction | None


@dataclass(frozen=True)
class ListPrice:
    """The list price of a slice-hour from `valid_from` until the next of the offering; None is the flavor's rate."""

    valid_from: datetime
    per_slice_hour: Fraction | None


Rates = Mapping[str, Sequence[Rate]]
"""Rates by flavor, each sorted by `valid_from`. No price is in force before the first, and for a flavor without any."""
FREE = (Rate(datetime.min.replace(tzinfo=UTC), Fraction(0)),)
"""The rates of what is not charged."""
ListPrices = Mapping[str, Sequence[ListPrice]]
"""List prices by offering, each sorted by `valid_from`."""
NO_LIST: ListPrices = {}


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


def rated_usage(
    intervals: Iterable[Usage], prices: Rates, window: Window | None, now: datetime, lists: ListPrices = NO_LIST
) -> RatedUsage:
    """Return what was used in `window` (None: ever) and until `now`, up to which open intervals are charged."""
    return _sum([_rated(usage, prices, lists, window, now) for usage in intervals])


def slice_rates(rates: Sequence[Rate], listed: Sequence[ListPrice], slice_share: Fraction) -> Sequence[Rate]:
    """Return the prices of a GPU-hour that is held as slices, given those of the flavor and the list prices of the
    offering. A list price is divided by the share of a GPU that the slice takes, and rounded half up to the decimal
    places of a price: costs are that unit price times GPU-hours, so that what a slice is charged follows its part of
    the GPU.
    """
    if not listed:
        return rates
    moments = sorted({row.valid_from for row in rates} | {row.valid_from for row in listed})
    return [Rate(at, _slice_rate(rates, listed, slice_share, at)) for at in moments]


def gpu_hours(intervals: Iterable[Usage], window: Window | None, now: datetime) -> Fraction:
    """Return whole-GPU equivalents times hours, over the same time as `rated_usage`."""
    total = Fraction(0)
    for usage in intervals:
        start, end = _bounds(usage, window, now)
        total += usage.gpus * _hours(start, end)
    return total


class Dated(Protocol):
    """What is in force from `valid_from` until the next of its kind."""

    @property
    def valid_from(self) -> datetime: ...


AnyDated = TypeVar("AnyDated", bound=Dated)


def in_force(rows: Sequence[AnyDated], at: datetime) -> AnyDated | None:
    """Return the row in force at `at`, of rows in order of time; None before the first."""
    place = bisect_right(rows, at, key=lambda row: row.valid_from)
    return rows[place - 1] if place else None


def rate_at(rates: Sequence[Rate], at: datetime) -> Fraction | None:
    """Return the price in force at `at`, or None before the first."""
    rate = in_force(rates, at)
    return rate.per_gpu_hour if rate else None


def list_price_at(listed: Sequence[ListPrice], at: datetime) -> Fraction | None:
    """Return the list price of a slice-hour in force at `at`, or None where the rate of the flavor is."""
    price = in_force(listed, at)
    return price.per_slice_hour if price else None


def by_price(
    rates: Sequence[Rate],
    start: datetime,
    end: datetime,
    *,
    listed: Sequence[ListPrice] = (),
    slice_share: Fraction = ONE,
    is_charged: bool = True,
) -> Iterator[tuple[Fraction | None, datetime, datetime]]:
    """Yield the prices of a GPU-hour in force in ``[start, end)``, each with its part of that time; None is no price.

    Those of the flavor are `rates`. Slices that take `slice_share` of a GPU have the list prices of their offering
    where these are set (`slice_rates`). What is not charged has the price 0.
    """
    rates = slice_rates(rates, listed, slice_share) if is_charged else FREE
    place = bisect_right(rates, start, key=lambda rate: rate.valid_from)
    while start < end:
        until = min(end, rates[place].valid_from) if place < len(rates) else end
        yield rates[place - 1].per_gpu_hour if place else None, start, until
        start, place = until, place + 1


def _rated(usage: Usage, prices: Rates, lists: ListPrices, window: Window | None, now: datetime) -> RatedUsage:
    start, end = _bounds(usage, window, now)
    parts = by_price(
        prices.get(usage.flavor, ()),
        start,
        end,
        listed=lists.get(usage.offering, ()),
        slice_share=usage.slice_share,
        is_charged=usage.is_charged,
    )
    return _sum([rated(usage.gpus * _hours(since, until), price) for price, since, until in parts])


def _slice_rate(
    rates: Sequence[Rate], listed: Sequence[ListPrice], slice_share: Fraction, at: datetime
) -> Fraction | None:
    per_slice_hour = list_price_at(listed, at)
    if per_slice_hour is None:
        return rate_at(rates, at)
    return Fraction(floor(per_slice_hour / slice_share * PRICE_UNITS + Fraction(1, 2)), PRICE_UNITS)


def _sum(parts: Sequence[RatedUsage]) -> RatedUsage:
    """Return the sum; most sums have one part, and adding fractions takes most of the time."""
    return sum(parts[1:], parts[0]) if parts else RatedUsage()


def _bounds(usage: Usage, window: Window | None, now: datetime) -> tuple[datetime, datetime]:
    end = min(usage.end, now) if usage.end else now
    return (max(usage.start, window.start), min(end, window.end)) if window else (usage.start, end)


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction(max(0, (end - start) // MICROSECOND), MICROSECONDS_PER_HOUR)
