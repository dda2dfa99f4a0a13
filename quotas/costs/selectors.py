"""Reads prices in force, cost to date, and sums over a window."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from quotas.costs import (
    columns,
    currencies,
    filters,
    fleet_costs,
    idle_views,
    ledger,
    month_charges,
    month_factors,
    rates,
    rating,
    run_rates,
    steps,
)
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.cost_rows import COLUMNS, UNPRICED, CostRow, Costs
from quotas.costs.filters import EVERYTHING, Where
from quotas.costs.fleet_costs import Group, NotHeld, Readings
from quotas.costs.idle_views import HIDDEN, IdleView
from quotas.costs.month_charges import MonthCharges
from quotas.costs.rates import PriceList
from quotas.costs.rating import Usage, Window
from quotas.costs.run_rates import Metric
from quotas.costs.steps import Step
from quotas.metering import charged_intervals, ledger_starts
from quotas.metering.charged_intervals import Charged, Row
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


def visible_costs(
    user: User, window: Window, aggregate: Sequence[str], *, idle: IdleView | None = HIDDEN, **more: Any
) -> Costs:
    """Return `costs` of the teams whose things `user` may read; `idle` None is the view with most that they may see.

    Raises Forbidden for a view of the fleet for who does not see all of it.
    """
    sees_all = access.sees_all(user)
    view = idle_views.for_person(idle, sees_all=sees_all)
    teams = None if sees_all else list(access.visible_teams(user).values_list("slug", flat=True))
    return costs(window, aggregate, teams=teams, idle=view, **more)


def costs(
    window: Window,
    aggregate: Sequence[str] = ("project",),
    *,
    step: Step = Step.ALL,
    calendar: Calendar = UTC_CALENDAR,
    where: Where = EVERYTHING,
    teams: Collection[str] | None = None,
    now: datetime | None = None,
    idle: IdleView = HIDDEN,
    metric: Metric = Metric.CUMULATIVE,
) -> Costs:
    """Return usage and cost in `window` by the keys in `aggregate` (of `columns`), in two queries.

    Unless `idle` hides it, also what nobody is charged for, in rows of its own (`fleet_costs.IDLE`) if there are keys
    other than `fleet_costs.KEYS`; what is idle in the rows that `idle` says.

    Each `step` of the `calendar` has rows of its own. `teams` are the slugs whose costs may be seen, None for all.
    Amounts are rounded once over the whole answer, by largest remainder: hours to 6 places and money to 4, so that the
    rows add up to the sums. Run-rates (`metric`) of a step add up to that of the step.
    """
    kept = filters.as_filter(where) if teams is None else filters.both(where, {"team": teams})
    keys, until = columns.grouped_by(aggregate), now or clock.now()
    columns.check("filter", filters.keys(kept))
    edges = steps.edges(window, step, calendar)
    found = ledger.sums(edges, keys, kept, until)
    whole = ledger.total(found, window).usage
    unit, is_entered = month_charges.currency_and_existence()
    readings = Readings(until, month_factors.starts(window.start, window.end) if is_entered else ())
    others = idle_views.not_held(idle, edges, keys, kept, until, readings)
    shows_fleet = idle != HIDDEN and teams is None
    charges = MonthCharges()
    if is_entered:
        charges = month_charges.read(edges, keys, kept, until, readings, fleet=shows_fleet, sees_all=teams is None)
    since = {} if idle == HIDDEN else ledger_starts.capacity_recorded_since()
    if others is not None:
        for group, lines in charges.fleet.items():
            others.setdefault(group, {}).update(lines)
    known = {group[:2] for group in found}
    more = dict.fromkeys([*(others or ()), *charges.groups()])
    found += [ledger.Sum(*group) for group in more if group not in known]
    found.sort(key=lambda group: (group.window.start, -group.cost, group.names))
    hours = _rounded([group.used for group in found], whole.gpu_hours, money.HOURS_PLACES)
    unpriced = _rounded([group.unpriced for group in found], whole.unpriced_gpu_hours, money.HOURS_PLACES)
    factors = {Window(*bounds): run_rates.factor(metric, Window(*bounds), until) for bounds in pairwise(edges)}
    amounts = _amounts(found, whole.priced_cost, metric, factors)
    idle_costs = idle_views.rounded(others or {}, factors)
    unknown = dict.fromkeys([*(COLUMNS.values() if teams is None else [COLUMNS[Category.IDLE]]), UNPRICED])
    not_held = [
        _not_held(others, idle_costs, one, factors[one.window])
        if others is not None and idle_views.is_known(idle, keys, kept, since, one)
        else unknown
        for one in found
    ]
    of_months = (charges.adjustment, charges.shared)
    groups = [one[:2] for one in found]
    adjustments, shared = (month_charges.texts(month_charges.scaled(of, groups, factors)) for of in of_months)
    parts = zip(found, hours, unpriced, amounts, zip(adjustments, shared, strict=True), strict=True)
    rows = [_row(keys, *amount, unit, others_of) for amount, others_of in zip(parts, not_held, strict=True)]
    rate = run_rates.factor(metric, window, until)
    added = [month_charges.total(of, rate) for of in of_months]
    return Costs(
        window=window,
        currency=unit,
        rows=rows,
        gpu_hours=money.text(whole.gpu_hours, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(whole.unpriced_gpu_hours),
        total=month_charges.whole_text(None if whole.cost is None else whole.cost * rate, added),
        capacity_recorded_since={
            one: at for one, at in since.items() if teams is None and fleet_costs.keeps_cluster(kept, one)
        },
        billed_share=money.text(charges.billed_share) if charges.billed_share else None,
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
    others: NotHeld, idle_costs: Mapping[Group, Decimal], row: ledger.Sum, factor: Fraction
) -> dict[str, Any]:
    """Return the columns of what nobody is charged for."""
    group = row.window, row.names
    usages = others.get(group, {})
    costs = {COLUMNS[one]: usage.cost for one, usage in usages.items()}
    texts = {name: None if cost is None else money.text(cost * factor) for name, cost in costs.items()}
    if group in idle_costs:
        texts[COLUMNS[Category.IDLE]] = str(idle_costs[group])
    unpriced = sum((usages[one].unpriced_gpu_hours for one in usages if isinstance(one, Category)), Fraction(0))
    return {**texts, UNPRICED: money.hours_text(unpriced)}


def _row(
    keys: Sequence[str],
    group: ledger.Sum,
    hours: Decimal,
    unpriced: Decimal,
    amount: Decimal,
    of_months: tuple[str | None, str | None],
    unit: str,
    others: Mapping[str, Any],
) -> CostRow:
    adjustment, shared = of_months
    cost = None if group.is_unpriced else str(amount)
    return CostRow(
        name="/".join(group.names) or columns.ALL,
        properties=dict(zip(keys, group.names, strict=True)),
        window=group.window,
        gpu_hours=str(hours),
        unpriced_gpu_hours=str(unpriced) if group.unpriced else money.hours_text(0),
        cost=cost,
        total=month_charges.sum_text(cost, adjustment, shared),
        currency=unit,
        adjustment=adjustment,
        shared_cost=shared,
        **others,
    )


def _rounded(amounts: Sequence[int], total: Fraction, places: int) -> list[Decimal]:
    """Return the parts of the total in proportion to the amounts."""
    return money.split(total, amounts, places) if total else [Decimal(money.text(0, places))] * len(amounts)
