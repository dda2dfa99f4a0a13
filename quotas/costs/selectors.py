"""Reads prices in force, cost to date, and sums over a window."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from portal.core import clock, money
from portal.core.errors import Invalid
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Offering
from quotas.costs import currencies, idle_views, ledger, month_charges, rates, rating, windows
from quotas.costs.fleet_costs import Column, Group, NotHeld
from quotas.costs.idle_views import HIDDEN, IdleView
from quotas.costs.month_charges import MonthCharges
from quotas.costs.price_variance import CostLine
from quotas.costs.rates import PriceList
from quotas.costs.rating import Usage, Window
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
class CostRow:
    """One row of OpenCost's shape, for one group and window; amounts are decimal strings.

    `total` is what is charged: the sum of `cost`, `adjustment` and `shared_cost`, the parts of bills and fixed costs.
    `cost` and it are without the unpriced GPU-hours, and None if those are all there are; `total` also if a part of a
    bill or fixed cost is not known. The others say what nobody is charged for, and are no part of it, whatever rows
    they are in (`idle_views`). For who does not see the whole fleet they are "0", but for what is idle of their own
    teams' quota. None is without a price, if the window begins before capacity is recorded, or if too much is not
    rolled up yet. `unpriced_idle_gpu_hours` are those of them without a price.
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
    price_variance: str | None = "0"
    node_rest: str | None = "0"
    idle_adjustment: str | None = "0"
    idle_shared_cost: str | None = "0"
    adjustment: str | None = "0"
    shared_cost: str | None = "0"


COLUMNS: Mapping[Column, str] = {
    Category.IDLE: "idle_cost",
    Category.STRANDED: "stranded_cost",
    Category.UNAVAILABLE: "unavailable_cost",
    Category.UNMANAGED: "unmanaged_cost",
    Category.VARIANCE: "variance",
    CostLine.PRICE_VARIANCE: "price_variance",
    CostLine.NODE_REST: "node_rest",
    CostLine.IDLE_ADJUSTMENT: "idle_adjustment",
    CostLine.IDLE_SHARED_COST: "idle_shared_cost",
}
UNPRICED = "unpriced_idle_gpu_hours"


@dataclass(frozen=True)
class Costs:
    """Rows by time, highest cost first, and their exact sums, rounded so that the rows add up to them.

    `total` is without the unpriced GPU-hours, and None if those are all there are. `capacity_recorded_since` is by
    cluster, None where none is recorded; empty for who does not see the whole fleet. `billed_share` is the part of the
    cost of capacity that bills cover, from 0 to 1; None for others, and where nothing is billed.
    """

    window: Window
    currency: str
    rows: list[CostRow]
    gpu_hours: str
    unpriced_gpu_hours: str
    total: str | None
    capacity_recorded_since: Mapping[str, datetime | None]
    billed_share: str | None = None


def currency() -> str:
    """Return the currency of all amounts."""
    return currencies.of_portal() or rates.NO_PRICE_YET


def prices_per_hour(offerings: Iterable[Offering], at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key, in one query; offerings without a price are
    absent.
    """
    listed = list(offerings)
    return slice_prices(listed, rates.read(offering.flavor.name for offering in listed), at)


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
    found: dict[UUID, list[tuple[Usage, bool]]] = defaultdict(list)
    for row, start, end, gpus in charged_intervals.until(intervals, now):
        share = Fraction(row.gpu_share_numerator, row.gpu_share_denominator)
        usage = Usage(row.flavor, gpus, start, end, not row.uncharged, row.offering, share)
        found[row.holder_id].append((usage, row.unused))
    charged = {}
    for key, rows in found.items():
        rated = rating.rated_usage((usage for usage, _ in rows), prices.rates, None, now, prices.lists)
        unused = rating.gpu_hours((usage for usage, is_unused in rows if is_unused), None, now)
        charged[key] = Charge(rated.gpu_hours, rated.gpu_hours - unused, rated.unpriced_gpu_hours, rated.cost)
    return charged


def visible_costs(
    user: User,
    window: Window,
    aggregate: Sequence[str],
    *,
    accumulate: bool = True,
    where: Mapping[str, Collection[str]] | None = None,
    idle: IdleView | None = HIDDEN,
) -> Costs:
    """Return `costs` of the teams whose things `user` may read; `idle` None is the view with most that they may see.

    Raises Forbidden for a view of the fleet for who does not see all of it.
    """
    sees_all = access.sees_all(user)
    view = idle_views.for_person(idle, sees_all=sees_all)
    teams = None if sees_all else list(access.visible_teams(user).values_list("slug", flat=True))
    return costs(window, aggregate, accumulate=accumulate, where=where, teams=teams, idle=view)


def costs(
    window: Window,
    aggregate: Sequence[str] = ("project",),
    *,
    accumulate: bool = True,
    where: Mapping[str, Collection[str]] | None = None,
    teams: Collection[str] | None = None,
    now: datetime | None = None,
    idle: IdleView = HIDDEN,
) -> Costs:
    """Return usage and cost in `window` by the keys in `aggregate` (of `ledger.KEYS`), in two queries.

    Unless `idle` hides it, also what nobody is charged for, in rows of its own (`fleet_costs.IDLE`) if there are keys
    other than cluster and flavor; what is idle in the rows that `idle` says.

    `accumulate` False gives rows per UTC day. `where` is {key: values to keep}. `teams` are the slugs whose costs may
    be seen, None for all. Amounts are rounded once over the whole answer, by largest remainder: hours to 6 places and
    money to 4, so that the rows add up to the sums.
    """
    _check("aggregate", aggregate)
    kept = {key: set(values) for key, values in (where or {}).items()}
    _check("filter", list(kept))
    if teams is not None:
        kept["team"] = kept.get("team", set(teams)) & set(teams)
    edges = [window.start, window.end] if accumulate else windows.midnights(window)
    keys, until = list(dict.fromkeys(aggregate)), now or clock.now()
    found = ledger.sums(edges, keys, kept, until)
    whole = ledger.total(found, window).usage
    unit, is_entered = month_charges.currency_and_existence()
    others, shows_fleet = idle_views.not_held(idle, edges, keys, kept, until), idle != HIDDEN and teams is None
    charges = MonthCharges()
    if is_entered:
        charges = month_charges.read(edges, keys, kept, until, fleet=shows_fleet, sees_all=teams is None)
    since = {} if idle == HIDDEN else ledger_starts.capacity_recorded_since()
    if others is not None:
        for group, lines in charges.fleet.items():
            others.setdefault(group, {}).update(lines)
    known = {group[:2] for group in found}
    groups = dict.fromkeys([*(others or ()), *charges.groups()])
    found += [ledger.Sum(*group) for group in groups if group not in known]
    found.sort(key=lambda group: (group.window.start, -group.cost, group.names))
    hours = _rounded([group.used for group in found], whole.gpu_hours, money.HOURS_PLACES)
    unpriced = _rounded([group.unpriced for group in found], whole.unpriced_gpu_hours, money.HOURS_PLACES)
    amounts = _rounded([group.cost for group in found], whole.priced_cost, money.MONEY_PLACES)
    idle_costs = idle_views.rounded(others or {})
    unknown = dict.fromkeys([*(COLUMNS.values() if teams is None else [COLUMNS[Category.IDLE]]), UNPRICED])
    columns = [
        _not_held(others, idle_costs, one)
        if others is not None and idle_views.is_known(idle, keys, kept, since, one)
        else unknown
        for one in found
    ]
    adjustments = month_charges.texts([charges.adjustment.get(one[:2], Fraction(0)) for one in found])
    shared = month_charges.texts([charges.shared.get(one[:2], Fraction(0)) for one in found])
    parts = zip(found, hours, unpriced, amounts, zip(adjustments, shared, strict=True), strict=True)
    rows = [_row(*amount, unit, more) for amount, more in zip(parts, columns, strict=True)]
    total = None if whole.cost is None else money.text(whole.cost)
    return Costs(
        window=window,
        currency=unit,
        rows=rows,
        gpu_hours=money.text(whole.gpu_hours, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(whole.unpriced_gpu_hours),
        total=_total(total, *adjustments, *shared),
        capacity_recorded_since={
            one: at for one, at in since.items() if teams is None and one in kept.get("cluster", since)
        },
        billed_share=money.text(charges.billed_share) if charges.billed_share else None,
    )


def _not_held(others: NotHeld, idle_costs: Mapping[Group, Decimal], row: ledger.Sum) -> dict[str, Any]:
    """Return the columns of what nobody is charged for."""
    group = row.window, row.names
    usages = others.get(group, {})
    texts = {COLUMNS[one]: None if usage.cost is None else money.text(usage.cost) for one, usage in usages.items()}
    if group in idle_costs:
        texts[COLUMNS[Category.IDLE]] = str(idle_costs[group])
    unpriced = sum((usages[one].unpriced_gpu_hours for one in usages if isinstance(one, Category)), Fraction(0))
    return {**texts, UNPRICED: money.hours_text(unpriced)}


def _total(*amounts: str | None) -> str | None:
    """Return the sum of decimal strings; None if any is not known."""
    known = [amount for amount in amounts if amount is not None]
    return str(sum(map(Decimal, known), Decimal(0))) if len(known) == len(amounts) else None


def _row(
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
        name="/".join(group.names) or "all",
        window=group.window,
        gpu_hours=str(hours),
        unpriced_gpu_hours=str(unpriced) if group.unpriced else money.hours_text(0),
        cost=cost,
        total=_total(cost, adjustment, shared),
        currency=unit,
        adjustment=adjustment,
        shared_cost=shared,
        **others,
    )


def _check(field: str, keys: Sequence[str]) -> None:
    unknown = [key for key in keys if key not in ledger.KEYS]
    if unknown:
        raise Invalid({field: [f"{', '.join(unknown)} cannot be used. Use any of {', '.join(ledger.KEYS)}."]})


def _rounded(amounts: Sequence[int], total: Fraction, places: int) -> list[Decimal]:
    """Return the parts of the total in proportion to the amounts."""
    return money.split(total, amounts, places) if total else [Decimal(money.text(0, places))] * len(amounts)
