"""Reads what the capacity of each month cost, and by what bills and fixed costs add to it."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise

from portal.clusters import registry
from quotas.costs import ledger, month_shares
from quotas.costs.fleet_costs import FleetCosts, Readings
from quotas.costs.models import Bill, SharedCost
from quotas.costs.month_shares import Capacity, ClusterMonth, Factors, FixedCost
from quotas.costs.node_costs import CostPart
from quotas.costs.questions import Question
from quotas.costs.rating import MICROSECOND
from quotas.metering import ledger_starts
from quotas.metering.hours import month_of, next_month

ZERO = Fraction(0)


@dataclass(frozen=True)
class Months:
    """The months of a window: their factors, what a GPU-hour of a flavor costs by month, cluster and flavor, and the
    clusters and months with a bill.
    """

    edges: Sequence[datetime]
    factors: Sequence[Factors]
    per_gpu_hour: Mapping[tuple[int, str, str], Fraction]
    billed: Collection[tuple[int, str]]

    def at(self, moment: datetime) -> int:
        return bisect_right(self.edges, moment) - 1


def starts(start: datetime, end: datetime) -> list[datetime]:
    """Return the starts of the months that ``[start, end)`` touches, and the end of the last."""
    firsts = list(_month_starts(start, end))
    return [*firsts, next_month(firsts[-1])]


def read(question: Question, readings: Readings) -> Months | None:
    """Return the factors of the months that a window, which has begun, touches until now; None if nothing was entered
    for them.
    """
    edges, now = starts(question.passed.start, question.passed.end), question.now
    firsts = edges[:-1]
    bills = _bills(firsts)
    names = registry.slugs()
    fixed = _fixed(edges, names, now)
    if not bills and not any(fixed):
        return None
    costs, since = readings.between(edges), ledger_starts.capacity_recorded_since()
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
    return Months(edges, factors, per_gpu_hour, billed)


def _month_starts(start: datetime, last: datetime) -> Iterator[datetime]:
    at = month_of(start)
    while at < last:
        yield at
        at = next_month(at)


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
