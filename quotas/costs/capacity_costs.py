"""Reads what capacity cost, from its roll-ups and, of what is not rolled up, from the ledger; and rolls it up."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from django.db.models import Q

from portal.core import money
from portal.core.reading import read_rows
from quotas.costs import node_costs, rates
from quotas.costs.models import CapacityCostHour, NodeCost, NodeInterval, NodeTerm
from quotas.costs.node_costs import CostPart, Line, NodeSpan, Stated, StatedCost, StatedTerm, UnitSpan
from quotas.costs.node_split import Weights
from quotas.costs.node_terms import Term
from quotas.costs.price_variance import PlaceCost
from quotas.metering import rolled_up
from quotas.metering.hours import HOUR
from quotas.metering.models import CapacityInterval
from quotas.metering.parts import MICROSECONDS_PER_HOUR
from quotas.metering.rolled_up import Rest

PRICE_PLACES = 10
COLUMNS = ("flavor", "term", "part", "price", "denominator")
"""The columns by which the hours of a day are added up, and the days of a month."""
_TOTALS = """
    SELECT step, total.cluster, total.flavor, total.part, total.price::text, total.denominator::text,
           sum(total.amount)::text AS amount
    FROM {rows}
    GROUP BY step, total.cluster, total.flavor, total.part, total.price, total.denominator
"""


class Capacity(NamedTuple):
    """The nodes and GPUs of a cluster in a time, and what is stated of them."""

    units: Sequence[UnitSpan]
    nodes: Sequence[NodeSpan]
    stated: Stated


def of_fleet(edges: Sequence[datetime], last: datetime, rest: Iterable[Rest]) -> list[PlaceCost]:
    """Return what capacity cost by step, between ``edges`` and until ``last``; ``rest`` is what is not rolled up."""
    totals = [_TOTALS.format(rows=rolled_up.totals(name, f"costs_capacitycost{name}")) for name in rolled_up.LEVELS]
    found = []
    for row in read_rows(f"{rolled_up.PIECES} {'UNION ALL'.join(totals)}", rolled_up.bounds(edges, last)):
        hours = Fraction(int(row.amount), int(row.denominator) * MICROSECONDS_PER_HOUR)
        place = (row.step, row.cluster, row.flavor)
        found.append(PlaceCost(place, CostPart(row.part), hours, hours * Fraction(row.price or 0)))
    for piece in rest:
        capacity = read(piece.cluster, piece.start, piece.end)
        for line, amount in node_costs.lines(*capacity, piece.start, piece.end).items():
            hours = Fraction(amount, line.denominator * MICROSECONDS_PER_HOUR)
            place = (piece.step, piece.cluster, line.flavor)
            found.append(PlaceCost(place, line.part, hours, hours * (line.price or 0)))
    return found


def read(cluster: str, start: datetime, end: datetime) -> Capacity:
    """Return the capacity of a cluster in ``[start, end)``, as `accounts.read` counts it; a fixed number of queries."""
    within = Q(end=None) | Q(end__gt=start)
    rows = CapacityInterval.objects.filter(within, cluster=cluster, start__lt=end).exclude(offered=None, end=None)
    units = [
        UnitSpan(row.node, value.flavor, row.count * value.gpus, row.start, row.end)
        for row in rows.order_by()
        if (value := row.final_value)
    ]
    nodes = [
        NodeSpan(
            row.node,
            Term(row.term) if row.term else None,
            Fraction(row.cpu_millicores, 1000),
            Fraction(row.memory_mib, 1024),
            row.start,
            row.end,
        )
        for row in NodeInterval.objects.filter(within, cluster=cluster, start__lt=end).order_by()
    ]
    return Capacity(units, nodes, _stated(cluster, {unit.flavor for unit in units}))


def _stated(cluster: str, flavors: Collection[str]) -> Stated:
    """Return what is stated of the nodes of a cluster; three queries."""
    of_nodes: dict[str, list[StatedCost]] = defaultdict(list)
    of_flavors: dict[tuple[str, Term], list[StatedCost]] = defaultdict(list)
    costs = NodeCost.objects.filter(Q(node__cluster=cluster) | Q(flavor__cluster=cluster)).order_by("valid_from")
    for row in costs.select_related("flavor", "node"):
        weights = Weights(Fraction(row.cpu_weight), Fraction(row.memory_gib_weight), Fraction(row.gpu_weight))
        cost = StatedCost(row.valid_from, Fraction(row.per_hour), weights if row.per == NodeCost.Per.NODE else None)
        if row.node is not None:
            of_nodes[row.node.name].append(cost)
        elif row.flavor is not None:
            of_flavors[row.flavor.name, Term(row.term)].append(cost)
    terms: dict[str, list[StatedTerm]] = defaultdict(list)
    words = NodeTerm.objects.filter(node__cluster=cluster).order_by("valid_from")
    for name, valid_from, term in words.values_list("node__name", "valid_from", "term"):
        terms[name].append(StatedTerm(valid_from, Term(term)))
    return Stated(of_nodes, of_flavors, terms, rates.by_flavor(flavors))


def replace_hours(cluster: str, hours: Sequence[datetime]) -> None:
    """Roll up what capacity cost in these hours, which adjoin; called in the transaction that replaces them."""
    CapacityCostHour.objects.filter(cluster=cluster, start__in=hours).delete()
    if hours:
        capacity = read(cluster, hours[0], hours[-1] + HOUR)
        CapacityCostHour.objects.bulk_create(
            (
                _row(cluster, hour, line, amount)
                for hour in hours
                for line, amount in node_costs.lines(*capacity, hour, hour + HOUR).items()
            ),
            batch_size=1000,
        )


def _row(cluster: str, hour: datetime, line: Line, amount: int) -> CapacityCostHour:
    price = None if line.price is None else Decimal(money.text(line.price, PRICE_PLACES))
    return CapacityCostHour(
        cluster_id=cluster,
        start=hour,
        flavor=line.flavor,
        term=line.term,
        part=line.part,
        price=price,
        denominator=line.denominator,
        amount=amount,
    )
