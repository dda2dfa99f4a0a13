"""Reads what bills and fixed costs add to the costs of a window: to what is held, and to what nobody is charged for."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from django.db import connection

from portal.clusters import registry
from portal.core import money
from quotas.costs import filters, fleet_costs, ledger, month_shares, rates
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.fleet_costs import IDLE, KEYS, PLACE_KEYS, Column, FleetCosts, Group
from quotas.costs.models import Bill, SharedCost
from quotas.costs.month_shares import Capacity, ClusterMonth, Factors, FixedCost
from quotas.costs.node_costs import CostPart
from quotas.costs.price_variance import UNKNOWN, CostLine
from quotas.costs.rating import MICROSECOND, RatedUsage, Window
from quotas.metering import ledger_starts
from quotas.metering.parts import Category

ZERO = Fraction(0)
_CURRENCY = """
    SELECT coalesce((SELECT currency FROM costs_price LIMIT 1), (SELECT currency FROM costs_nodecost LIMIT 1),
                    (SELECT currency FROM costs_bill LIMIT 1), (SELECT currency FROM costs_sharedcost LIMIT 1)),
           EXISTS (SELECT FROM costs_bill) OR EXISTS (SELECT FROM costs_sharedcost)
"""


@dataclass
class MonthCharges:
    """What is added to groups of what is held, None if it is not known, and to lines of what nobody is charged for.

    ``billed_share`` is the part of the cost of capacity, in clusters and months, that bills cover.
    """

    adjustment: dict[Group, Fraction | None] = field(default_factory=dict)
    shared: dict[Group, Fraction | None] = field(default_factory=dict)
    fleet: dict[Group, dict[Column, RatedUsage]] = field(default_factory=lambda: defaultdict(dict))
    billed_share: Fraction | None = None

    def groups(self) -> set[Group]:
        """Return the groups to which something is added, or may be."""
        return {*self.adjustment, *self.shared, *self.fleet}


@dataclass(frozen=True)
class _Months:
    """The months of a window: their factors, what a GPU-hour of a flavor costs by month, cluster and flavor, and the
    clusters and months with a bill.
    """

    edges: Sequence[datetime]
    factors: Sequence[Factors]
    per_gpu_hour: Mapping[tuple[int, str, str], Fraction]
    billed: Collection[tuple[int, str]]

    def at(self, moment: datetime) -> int:
        return bisect_right(self.edges, moment) - 1


def currency_and_existence() -> tuple[str, bool]:
    """Return the currency of all amounts, and whether any bill or fixed cost was entered; one query."""
    with connection.cursor() as cursor:
        cursor.execute(_CURRENCY)
        currency, is_entered = cursor.fetchone()
    return currency or rates.NO_PRICE_YET, is_entered


def texts(amounts: Sequence[Fraction | None]) -> list[str | None]:
    """Return amounts with a sign as decimal strings that add up to their rounded sum: each is the difference of two
    rounded sums of those before it. "0" is nothing, None is not known.
    """
    found: list[str | None] = []
    exact, rounded = ZERO, Decimal(0)
    for amount in amounts:
        exact += amount or 0
        until = Decimal(money.text(exact))
        found.append(None if amount is None else str(until - rounded) if amount else "0")
        rounded = until
    return found


def scaled(
    amounts: Mapping[Group, Fraction | None], groups: Iterable[Group], factors: Mapping[Window, Fraction]
) -> list[Fraction | None]:
    """Return what is added to each group, multiplied by the factor of its window; None if it is not known."""
    found = ((group, amounts.get(group, ZERO)) for group in groups)
    return [None if amount is None else amount * factors[group[0]] for group, amount in found]


def total(amounts: Mapping[Group, Fraction | None], factor: Fraction) -> Fraction | None:
    """Return the sum multiplied by a factor; None if an amount is not known."""
    known = [amount for amount in amounts.values() if amount is not None]
    return sum(known, ZERO) * factor if len(known) == len(amounts) else None


def read(
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
    *,
    fleet: bool,
    sees_all: bool,
) -> MonthCharges:
    """Return what bills and fixed costs add to the groups of ``ledger.sums``; with ``fleet`` also to what nobody is
    charged for, and for who ``sees_all`` what bills cover. A fixed number of queries.
    """
    found = MonthCharges()
    last = min(edges[-1], now)
    if edges[0] >= last:
        return found
    months = _months(edges[0], last, now)
    if months is None:
        return found
    cuts = sorted({*edges, *(at for at in months.edges if edges[0] < at < edges[-1])})
    for group, window, team, cluster, flavor, hours in _held(edges, cuts, keys, where, now):
        month = months.at(window.start)
        factors = months.factors[month]
        cost = hours * months.per_gpu_hour.get((month, cluster, flavor), ZERO)
        _add(found.adjustment, group, factors.adjustment.get(cluster, ZERO), cost)
        _add(found.shared, group, factors.shared.get(cluster, ZERO), cost)
        _add(found.shared, group, factors.even.get((team, cluster), ZERO), cost)
    if sees_all and not filters.keys(where) - set(PLACE_KEYS) and (costs := fleet_costs.read(cuts, now)):
        found.billed_share = _billed_share(months, cuts, costs, where)
        if fleet:
            _add_fleet(found, months, costs, edges, cuts, keys, where, now)
    return found


def _months(start: datetime, last: datetime, now: datetime) -> _Months | None:
    """Return the factors of the months that ``[start, last)`` touches; None if nothing was entered for them."""
    firsts = list(_month_starts(start, last))
    edges = [*firsts, _next_month(firsts[-1])]
    bills = _bills(firsts)
    names = registry.slugs()
    fixed = _fixed(edges, names, now)
    if not bills and not any(fixed):
        return None
    costs, since = fleet_costs.read(edges, now), ledger_starts.capacity_recorded_since()
    clusters = [_clusters(number, month, names, costs, bills, since) for number, month in enumerate(firsts)]
    per_gpu_hour = {
        (number, cluster, flavor): capacity.per_gpu_hour
        for number, of_month in enumerate(clusters)
        for cluster, one in of_month.items()
        for flavor, capacity in one.flavors.items()
    }
    team_costs = _team_costs(edges, fixed, per_gpu_hour, now)
    factors = [month_shares.factors(*one) for one in zip(clusters, fixed, team_costs, strict=True)]
    billed = {
        (number, cluster) for number, one in enumerate(clusters) for cluster in one if one[cluster].bill is not None
    }
    return _Months(edges, factors, per_gpu_hour, billed)


def _month_starts(start: datetime, last: datetime) -> Iterator[datetime]:
    at = start.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while at < last:
        yield at
        at = _next_month(at)


def _next_month(at: datetime) -> datetime:
    return at.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)


def _bills(months: Sequence[datetime]) -> dict[tuple[str, date], Fraction]:
    """Return the bills that count, by cluster and month."""
    rows = Bill.objects.filter(month__in=[month.date() for month in months]).order_by("id")
    return {(row.cluster_id, row.month): Fraction(row.amount) for row in rows}


def _fixed(edges: Sequence[datetime], names: Collection[str], now: datetime) -> list[list[FixedCost]]:
    """Return the fixed costs of each month as far as it has passed; one query."""
    found = []
    rows = list(SharedCost.objects.filter(month__lt=edges[-1].date()).order_by("month"))
    for month, until in pairwise(edges):
        passed = Fraction((min(until, now) - month) // MICROSECOND, (until - month) // MICROSECOND)
        in_force = {row.name: row for row in rows if row.month <= month.date()}
        found.append(
            [
                FixedCost(
                    Fraction(row.amount) * passed,
                    frozenset({row.cluster_id} if row.cluster_id else names),
                    row.teams,
                )
                for row in in_force.values()
                if row.amount
            ]
        )
    return found


def _clusters(
    number: int,
    month: datetime,
    names: Collection[str],
    costs: FleetCosts | None,
    bills: Mapping[tuple[str, date], Fraction],
    since: Mapping[str, datetime | None],
) -> dict[str, ClusterMonth]:
    """Return what the capacity of each cluster cost in the month of this number; unknown where too much is not rolled
    up, or was rolled up before costs of nodes were.
    """
    hours: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    gpus: dict[tuple[str, str], Capacity] = defaultdict(lambda: Capacity(ZERO, ZERO))
    rest: dict[str, Fraction] = defaultdict(Fraction)
    for part in costs.parts if costs else ():
        if part.step == number + 1:
            hours[part.cluster, part.flavor] += part.gpu_hours
    for one in costs.capacity if costs else ():
        step, cluster, flavor = one.place
        if step == number + 1 and one.part == CostPart.REST:
            rest[cluster] += one.cost
        elif step == number + 1:
            before = gpus[cluster, flavor]
            gpus[cluster, flavor] = Capacity(before.gpu_hours + one.hours, before.cost + one.cost)
    places = hours.keys() | gpus.keys()
    return {
        cluster: ClusterMonth(
            {flavor: gpus[cluster, flavor] for place, flavor in places if place == cluster},
            rest[cluster],
            bills.get((cluster, month.date())),
            costs is not None and all(hours[place] == gpus[place].gpu_hours for place in places if place[0] == cluster),
            (began := since.get(cluster)) is not None and began <= month,
        )
        for cluster in names
    }


def _team_costs(
    edges: Sequence[datetime],
    fixed: Sequence[Sequence[FixedCost]],
    per_gpu_hour: Mapping[tuple[int, str, str], Fraction],
    now: datetime,
) -> list[dict[tuple[str, str], Fraction]]:
    """Return for each month what the GPU-hours cost of the teams that share something evenly; one query if any does."""
    found: list[dict[tuple[str, str], Fraction]] = [defaultdict(Fraction) for _ in fixed]
    teams = {team for costs in fixed for cost in costs for team in cost.teams}
    if teams:
        for one in ledger.sums(edges, ("team", "cluster", "flavor"), {"team": teams}, now):
            team, cluster, flavor = one.names
            month = edges.index(one.window.start)
            found[month][team, cluster] += one.usage.gpu_hours * per_gpu_hour.get((month, cluster, flavor), ZERO)
    return found


def _held(
    edges: Sequence[datetime],
    cuts: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
) -> Iterator[tuple[Group, Window, str, str, str, Fraction]]:
    """Yield what is held between two cuts: its group, the cut, team, cluster, flavor, and GPU-hours; one query."""
    more = ("team", "cluster", "flavor")
    columns = list(dict.fromkeys([*keys, *more]))
    for one in ledger.sums(cuts, columns, where, now):
        values = dict(zip(columns, one.names, strict=True))
        group = _step(edges, one.window.start), tuple(values[key] for key in keys)
        team, cluster, flavor = (values[name] for name in more)
        yield group, one.window, team, cluster, flavor, one.usage.gpu_hours


def _add_fleet(
    found: MonthCharges,
    months: _Months,
    costs: FleetCosts,
    edges: Sequence[datetime],
    cuts: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
) -> None:
    """Add the lines of what nobody is charged for, of what is left of nodes, and of teams that used nothing."""
    lines = [(one.place, one.cost) for one in costs.capacity if one.part == CostPart.REST] + [
        (
            (part.step, part.cluster, part.flavor),
            part.gpu_hours * months.per_gpu_hour.get((months.at(cuts[part.step - 1]), part.cluster, part.flavor), ZERO),
        )
        for part in costs.parts
        if part.category != Category.HELD
    ]
    for (step, cluster, flavor), cost in lines:
        values = {"cluster": cluster, "flavor": flavor, "node": ""}
        if filters.may_keep(where, values):
            names = tuple((values[key] or UNALLOCATED) if key in values else IDLE for key in keys)
            group = _step(edges, cuts[step - 1]), names
            factors = months.factors[months.at(cuts[step - 1])]
            _add_line(found, group, CostLine.IDLE_ADJUSTMENT, factors.adjustment.get(cluster, ZERO), cost)
            _add_line(found, group, CostLine.IDLE_SHARED_COST, factors.shared.get(cluster, ZERO), cost)
    if not filters.keys(where):
        for start, end in pairwise(cuts):
            if start >= now:
                break
            month = months.at(start)
            passed = min(months.edges[month + 1], now) - months.edges[month]
            part = Fraction((min(end, now) - start) // MICROSECOND, passed // MICROSECOND)
            names = tuple(UNALLOCATED if key in KEYS else IDLE for key in keys)
            group = _step(edges, start), names
            _add_line(found, group, CostLine.IDLE_SHARED_COST, months.factors[month].unused, part)


def _billed_share(months: _Months, cuts: Sequence[datetime], costs: FleetCosts, where: Filter) -> Fraction | None:
    """Return the part of the cost of capacity that bills cover; None if nothing costs anything."""
    total = billed = ZERO
    for one in costs.capacity:
        step, cluster, flavor = one.place
        if filters.may_keep(where, {"cluster": cluster, "flavor": flavor}):
            total += one.cost
            billed += one.cost if (months.at(cuts[step - 1]), cluster) in months.billed else 0
    return billed / total if total else None


def _step(edges: Sequence[datetime], moment: datetime) -> Window:
    step = bisect_right(edges, moment)
    return Window(edges[step - 1], edges[step])


def _add(found: dict[Group, Fraction | None], group: Group, factor: Fraction | None, cost: Fraction) -> None:
    before = found.get(group, ZERO)
    if factor is None or before is None:
        found[group] = None
    elif factor and cost:
        found[group] = before + factor * cost


def _add_line(found: MonthCharges, group: Group, line: CostLine, factor: Fraction | None, cost: Fraction) -> None:
    if factor is None or (factor and cost):
        before = found.fleet[group].get(line, RatedUsage())
        found.fleet[group][line] = before + (UNKNOWN if factor is None else RatedUsage(priced_cost=factor * cost))
