"""What nobody is charged for: idle, stranded, unavailable and unmanaged GPU-hours, variance, and what nodes cost beyond
the price of their GPUs.

Nobody but platform staff may see them: they tell what all teams together use.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

from quotas.costs import capacity_costs, price_variance, rollups
from quotas.costs.ledger import UNALLOCATED
from quotas.costs.price_variance import CostLine, Place, PlaceCost
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.metering import rolled_up
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category
from quotas.metering.rolled_up import FleetPart, Rest

IDLE = "__idle__"
"""OpenCost's name for what nobody holds: the value of every key but cluster and flavor."""
KEYS = ("cluster", "flavor")
Group = tuple[Window, tuple[str, ...]]
Column = Category | CostLine


class FleetCosts(NamedTuple):
    """All GPU-hours of the fleet by step, and what capacity cost."""

    parts: Sequence[FleetPart]
    capacity: Sequence[PlaceCost]


def read(edges: Sequence[datetime], now: datetime) -> FleetCosts | None:
    """Return what there was between ``edges`` until ``now``; None if too much of it is not rolled up."""
    parts, rest = rolled_up.of_fleet(edges, now)
    if rolled_up.is_too_long(rest):
        return None
    parts += [one for piece in rest for one in _from_ledger(piece)]
    return FleetCosts(parts, capacity_costs.of_fleet(edges, now, rest))


def not_held(
    edges: Sequence[datetime], keys: Sequence[str], where: Mapping[str, Collection[str]], now: datetime
) -> dict[Group, dict[Column, RatedUsage]] | None:
    """Return the GPU-hours of every category but held, as ``ledger.sums``, and the lines of what nodes cost; None if
    too much of the window is not rolled up. A filter by anything but cluster and flavor leaves none.
    """
    found: dict[Group, dict[Column, RatedUsage]] = defaultdict(lambda: defaultdict(RatedUsage))
    if where.keys() - set(KEYS):
        return found
    costs = read(edges, now)
    if costs is None:
        return None
    at_price = [((part.step, part.cluster, part.flavor), part.category, _rated(part)) for part in costs.parts]
    beyond = price_variance.lines(((place, usage) for place, _, usage in at_price), costs.capacity)
    for (step, cluster, flavor), column, usage in chain[tuple[Place, Column, RatedUsage]](at_price, beyond):
        values = {"cluster": cluster, "flavor": flavor}
        if column != Category.HELD and all(values[key] in kept for key, kept in where.items()):
            names = tuple((values[key] or UNALLOCATED) if key in values else IDLE for key in keys)
            group = Window(edges[step - 1], edges[step]), names
            if usage is not price_variance.UNKNOWN or group in found:
                found[group][column] += usage
    return found


def is_known(
    keys: Sequence[str],
    where: Mapping[str, Collection[str]],
    since: Mapping[str, datetime | None],
    window: Window,
    names: Sequence[str],
) -> bool:
    """Return whether what nobody held in a row is known: the capacity of its clusters is recorded from its window's
    start on. ``since`` is by cluster. Known is also that a row of other keys than cluster and flavor, or with a filter
    by them, has nothing of it.
    """
    if where.keys() - set(KEYS) or (set(keys) - set(KEYS) and IDLE not in names):
        return True
    values = dict(zip(keys, names, strict=True))
    clusters = {values["cluster"]} if "cluster" in values else where.get("cluster", since)
    return all((at := since.get(cluster)) is not None and at <= window.start for cluster in clusters)


def _rated(part: FleetPart) -> RatedUsage:
    return rated(part.gpu_hours, None if part.price is None else Fraction(part.price))


def _from_ledger(rest: Rest) -> Iterator[FleetPart]:
    ledger = rollups.read(rest.cluster, rest.start, rest.end)
    for row in rollups.rows(ledger, rest.start, rest.end):
        hours = Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
        yield FleetPart(rest.step, rest.cluster, row.flavor, Category(row.category), row.price, hours)
