"""Reads prices in force, and cost to date."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from uuid import UUID

from quotas.catalog.models import Offering
from quotas.costs import currencies, rates, rating
from quotas.costs.rates import PriceList
from quotas.costs.rating import Usage
from quotas.metering import charged_intervals
from quotas.metering.charged_intervals import Charged, Row
from quotas.metering.held_intervals import HeldInterval
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class Charge:
    """GPU-hours that were reserved, those of them that were used, and the cost of all that was reserved.

    `cost` is without `unpriced` GPU-hours, which have no price; None if that is all of them.
    """

    reserved: Fraction
    used: Fraction
    unpriced: Fraction
    cost: Fraction | None


NO_CHARGE = Charge(reserved=Fraction(0), used=Fraction(0), unpriced=Fraction(0), cost=Fraction(0))
"""The charge of what was never held."""


def currency() -> str:
    """Return the currency of all amounts."""
    return currencies.of_portal() or rates.NO_PRICE_YET


def prices_per_hour(offerings: Iterable[Offering], at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key, in one query; offerings without a price are
    absent.
    """
    listed = list(offerings)
    return slice_prices(listed, rates.read(offering.flavor.name for offering in listed), at)


def prices_with_currency(offerings: Iterable[Offering], at: datetime) -> tuple[dict[str, Fraction], str]:
    """Return `prices_per_hour` and the currency of all amounts; one query, and more if none ever had a price."""
    listed = list(offerings)
    prices = rates.read(offering.flavor.name for offering in listed)
    return slice_prices(listed, prices, at), prices.currency if prices.rates or prices.lists else currency()


def slice_prices(offerings: Iterable[Offering], prices: PriceList, at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key; offerings without a price are absent."""
    found = {}
    for offering in offerings:
        per_slice = rating.list_price_at(prices.lists.get(offering.key, ()), at)
        per_gpu = rating.rate_at(prices.rates.get(offering.flavor.name, ()), at)
        if per_slice is not None:
            found[offering.key] = per_slice
        elif per_gpu is not None:
            found[offering.key] = per_gpu * offering.gpu_share
    return found


def charges_to_date(holder_ids: Collection[UUID], now: datetime) -> dict[UUID, Charge]:
    """Return what each allocation or Job is charged for until `now`, exact, in two queries and one more if any holds
    named devices; zero for those never held.
    """
    intervals = list(UsageInterval.objects.filter(holder_id__in=holder_ids))
    prices = rates.read(row.flavor for row in intervals)
    return dict.fromkeys(holder_ids, NO_CHARGE) | charges(intervals, prices, now)


def charges(intervals: Iterable[UsageInterval | HeldInterval], prices: PriceList, now: datetime) -> dict[UUID, Charge]:
    """Return what the holders of the intervals are charged for until `now`, exact; one query if there are any named
    devices, for the other uses of their GPUs.
    """
    return charges_of(charged_intervals.until(intervals, now), prices, now)


def charges_of(
    charged: Iterable[Charged[Row]], prices: PriceList, now: datetime, by: str = "holder_id"
) -> dict[UUID, Charge]:
    """Return what the pieces of intervals are charged for until `now`, exact, by holder, or by interval (`key`)."""
    found: dict[UUID, list[tuple[Usage, bool]]] = defaultdict(list)
    for one in charged:
        found[getattr(one.row, by)].append((usage_of(one), one.row.unused))
    sums = {}
    for key, rows in found.items():
        rated = rating.rated_usage((usage for usage, _ in rows), prices.rates, None, now, prices.lists)
        unused = rating.gpu_hours((usage for usage, is_unused in rows if is_unused), None, now)
        sums[key] = Charge(rated.gpu_hours, rated.gpu_hours - unused, rated.unpriced_gpu_hours, rated.cost)
    return sums


def usage_of(one: Charged[Row]) -> Usage:
    """Return what a piece of an interval is rated by."""
    row = one.row
    share = Fraction(row.gpu_share_numerator, row.gpu_share_denominator)
    return Usage(row.flavor, one.gpus, one.start, one.end, not row.uncharged, row.offering, share)
