"""Reads prices in force, cost to date, and sums over a window."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any
from uuid import UUID

from portal.core import clock, money
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Offering
from quotas.costs import columns, filters, fleet_costs, ledger, rates, rating, run_rates, steps
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.filters import EVERYTHING, Where
from quotas.costs.fleet_costs import Group
from quotas.costs.models import Price
from quotas.costs.rating import RatedUsage, Rates, Usage, Window
from quotas.costs.run_rates import Metric
from quotas.costs.steps import Step
from quotas.metering import charged_intervals, ledger_starts
from quotas.metering.held_intervals import HeldInterval
from quotas.metering.models import UsageInterval
from quotas.metering.parts import Category


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


@dataclass(frozen=True)
class Past:
    """What a row was in the window before. Zero if it was not there."""

    gpu_hours: str = "0.000000"
    unpriced_gpu_hours: str = "0"
    cost: str | None = "0.0000"
    total: str | None = "0.0000"


@dataclass(frozen=True)
class CostRow:
    """One row of OpenCost's shape, for one group and window; amounts are decimal strings.

    `total` is what is charged: the sum of `cost` and `shared_cost`, which is not computed yet and so "0". Both are
    without the unpriced GPU-hours, and None if those are all there are. The others say what nobody is charged for. They
    are "0" for who does not see the whole fleet, and None without a price, if the window begins before capacity is
    recorded, or if too much is not rolled up yet. `unpriced_idle_gpu_hours` are those of them without a price.

    `properties` are the values of the keys. `previous` and `change`, the difference of the totals, are None unless the
    row is compared with the window before.
    """

    name: str
    window: Window
    gpu_hours: str
    unpriced_gpu_hours: str
    cost: str | None
    total: str | None
    currency: str
    idle_cost: str | None = "0"
    stranded_cost: str | None = "0"
    unavailable_cost: str | None = "0"
    unmanaged_cost: str | None = "0"
    variance: str | None = "0"
    unpriced_idle_gpu_hours: str | None = "0"
    shared_cost: str = "0"
    properties: Mapping[str, str] = field(default_factory=dict)
    previous: Past | None = None
    change: str | None = None


COLUMNS = {
    Category.IDLE: "idle_cost",
    Category.STRANDED: "stranded_cost",
    Category.UNAVAILABLE: "unavailable_cost",
    Category.UNMANAGED: "unmanaged_cost",
    Category.VARIANCE: "variance",
}
UNPRICED = "unpriced_idle_gpu_hours"


@dataclass(frozen=True)
class Costs:
    """Rows by time, highest cost first, and their exact sums, rounded so that the rows add up to them.

    `total` is without the unpriced GPU-hours, and None if those are all there are. `capacity_recorded_since` is by
    cluster, None where none is recorded; empty for who does not see the whole fleet. `previous` are the costs with
    which these are compared.
    """

    window: Window
    currency: str
    rows: list[CostRow]
    gpu_hours: str
    unpriced_gpu_hours: str
    total: str | None
    capacity_recorded_since: Mapping[str, datetime | None]
    previous: "Costs | None" = None


def currency() -> str:
    """Return the currency of all prices."""
    return Price.objects.values_list("currency", flat=True).first() or rates.NO_PRICE_YET


def prices_per_hour(offerings: Iterable[Offering], at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key, in one query; offerings without a price are
    absent.
    """
    listed = list(offerings)
    return slice_prices(listed, rates.by_flavor(offering.flavor.name for offering in listed), at)


def slice_prices(offerings: Iterable[Offering], prices: Rates, at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key; offerings without a price are absent."""
    found = {}
    for offering in offerings:
        price = rating.rate_at(prices.get(offering.flavor.name, ()), at)
        if price is not None:
            found[offering.key] = price * offering.gpu_share
    return found


def charges_to_date(holder_ids: Collection[UUID], now: datetime) -> dict[UUID, Charge]:
    """Return what each allocation or Job is charged for until `now`, exact, in two queries and one more if any holds
    named devices; zero for those never held.
    """
    intervals = list(UsageInterval.objects.filter(holder_id__in=holder_ids))
    prices = rates.by_flavor(row.flavor for row in intervals)
    return dict.fromkeys(holder_ids, NO_CHARGE) | charges(intervals, prices, now)


def charges(
    intervals: Iterable[UsageInterval | HeldInterval], prices: Rates, now: datetime, by: str = "holder_id"
) -> dict[UUID, Charge]:
    """Return what the holders of the intervals are charged for until `now`, exact; one query if there are any named
    devices, for the other uses of their GPUs. With `by` the `key`, what each interval is charged.
    """
    found: dict[UUID, list[tuple[Usage, bool]]] = defaultdict(list)
    for row, start, end, gpus in charged_intervals.until(intervals, now):
        usage = Usage(row.flavor, gpus, start, end, is_charged=not row.uncharged)
        found[getattr(row, by)].append((usage, row.unused))
    charged = {}
    for key, rows in found.items():
        rated = rating.rated_usage((usage for usage, _ in rows), prices, None, now)
        unused = rating.gpu_hours((usage for usage, is_unused in rows if is_unused), None, now)
        charged[key] = Charge(rated.gpu_hours, rated.gpu_hours - unused, rated.unpriced_gpu_hours, rated.cost)
    return charged


def visible_costs(user: User, window: Window, aggregate: Sequence[str], *, fleet: bool = False, **more: Any) -> Costs:
    """Return `costs` of the teams whose things `user` may read; of the `fleet` only for who sees all of it."""
    sees_all = access.sees_all(user)
    teams = None if sees_all else list(access.visible_teams(user).values_list("slug", flat=True))
    return costs(window, aggregate, teams=teams, fleet=fleet and sees_all, **more)


def costs(
    window: Window,
    aggregate: Sequence[str] = ("project",),
    *,
    step: Step = Step.ALL,
    calendar: Calendar = UTC_CALENDAR,
    where: Where = EVERYTHING,
    teams: Collection[str] | None = None,
    now: datetime | None = None,
    fleet: bool = False,
    metric: Metric = Metric.CUMULATIVE,
) -> Costs:
    """Return usage and cost in `window` by the keys in `aggregate` (of `columns`), in two queries.

    With `fleet` also what nobody is charged for, in rows of its own (`fleet_costs.IDLE`) if there are keys other than
    `fleet_costs.KEYS`.

    Each `step` of the `calendar` has rows of its own. `teams` are the slugs whose costs may be seen, None for all.
    Amounts are rounded once over the whole answer, by largest remainder: hours to 6 places and money to 4, so that the
    rows add up to the sums. Run-rates (`metric`) of a step add up to that of the step.
    """
    kept = filters.as_filter(where) if teams is None else filters.both(where, {"team": teams})
    keys, until = columns.grouped_by(aggregate), now or clock.now()
    columns.check("filter", filters.keys(kept))
    edges = steps.edges(window, step, calendar)
    found = ledger.sums(edges, keys, kept, until)
    whole, unit = ledger.total(found, window).usage, currency()
    others = fleet_costs.not_held(edges, keys, kept, until) if fleet else {}
    since = ledger_starts.capacity_recorded_since() if fleet else {}
    if others:
        known = {group[:2] for group in found}
        found += [ledger.Sum(*group) for group in others if group not in known]
    found.sort(key=lambda group: (group.window.start, -group.cost, group.names))
    hours = _rounded([group.used for group in found], whole.gpu_hours, money.HOURS_PLACES)
    unpriced = _rounded([group.unpriced for group in found], whole.unpriced_gpu_hours, money.HOURS_PLACES)
    factors = {Window(*bounds): run_rates.factor(metric, Window(*bounds), until) for bounds in pairwise(edges)}
    amounts = _amounts(found, whole.priced_cost, metric, factors)
    others_of = [
        _not_held(
            others if not fleet or fleet_costs.is_known(keys, kept, since, one.window, one.names) else None,
            one,
            factors[one.window],
        )
        for one in found
    ]
    parts = zip(found, hours, unpriced, amounts, strict=True)
    rows = [_row(keys, *amount, unit, more) for amount, more in zip(parts, others_of, strict=True)]
    total = None if whole.cost is None else whole.cost * run_rates.factor(metric, window, until)
    return Costs(
        window=window,
        currency=unit,
        rows=rows,
        gpu_hours=money.text(whole.gpu_hours, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(whole.unpriced_gpu_hours),
        total=None if total is None else money.text(total),
        capacity_recorded_since={one: at for one, at in since.items() if fleet_costs.keeps_cluster(kept, one)},
    )


def _amounts(
    found: Sequence[ledger.Sum], cost: Fraction, metric: Metric, factors: Mapping[Window, Fraction]
) -> list[Decimal]:
    """Return the money of each row, rounded over the whole answer or, of run-rates, over its step."""
    if metric is Metric.CUMULATIVE:
        return _rounded([group.cost for group in found], cost, money.MONEY_PLACES)
    amounts: list[Decimal] = []
    for window, groups in groupby(found, key=lambda group: group.window):
        of_step = list(groups)
        rate = ledger.total(of_step, window).usage.priced_cost * factors[window]
        amounts += _rounded([group.cost for group in of_step], rate, money.MONEY_PLACES)
    return amounts


def _not_held(
    others: Mapping[Group, Mapping[Category, RatedUsage]] | None, row: ledger.Sum, factor: Fraction
) -> dict[str, Any]:
    """Return the columns of what nobody is charged for."""
    if not others:
        return {} if others is not None else dict.fromkeys((*COLUMNS.values(), UNPRICED))
    usages = others.get((row.window, row.names), {})
    costs = {COLUMNS[category]: usage.cost for category, usage in usages.items()}
    unpriced = sum((usage.unpriced_gpu_hours for usage in usages.values()), Fraction(0))
    texts = {name: None if cost is None else money.text(cost * factor) for name, cost in costs.items()}
    return {**texts, UNPRICED: money.hours_text(unpriced)}


def _row(
    keys: Sequence[str],
    group: ledger.Sum,
    hours: Decimal,
    unpriced: Decimal,
    amount: Decimal,
    unit: str,
    others: Mapping[str, Any],
) -> CostRow:
    cost = None if group.is_unpriced else str(amount)
    return CostRow(
        name="/".join(group.names) or columns.ALL,
        properties=dict(zip(keys, group.names, strict=True)),
        window=group.window,
        gpu_hours=str(hours),
        unpriced_gpu_hours=str(unpriced) if group.unpriced else money.hours_text(0),
        cost=cost,
        total=cost,
        currency=unit,
        **others,
    )


def _rounded(amounts: Sequence[int], total: Fraction, places: int) -> list[Decimal]:
    """Return the parts of the total in proportion to the amounts."""
    return money.split(total, amounts, places) if total else [Decimal(money.text(0, places))] * len(amounts)
