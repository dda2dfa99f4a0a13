"""What the GPU-hours cost that nobody is charged for: idle, stranded, unavailable, unmanaged, and variance.

Nobody but platform staff may see them: they tell what all teams together use.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from quotas.costs import filters, rollups
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.metering import rolled_up
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category
from quotas.metering.rolled_up import FleetPart, Rest

IDLE = "__idle__"
"""OpenCost's name for what nobody holds: the value of every key but KEYS."""
KEYS = ("cluster", "flavor", "node")
Group = tuple[Window, tuple[str, ...]]


def not_held(
    edges: Sequence[datetime], keys: Sequence[str], where: Filter, now: datetime
) -> dict[Group, dict[Category, RatedUsage]] | None:
    """Return the GPU-hours of every category but held, as ``ledger.sums``; None if too much of the window is not rolled
    up. A filter by anything but KEYS leaves none.

    A GPU that a device plugin counts has no node, whether it is held or not: a hold is a count on the flavor, so what
    it leaves is one, too. Of it only the node of unmanaged use is known.
    """
    found: dict[Group, dict[Category, RatedUsage]] = defaultdict(lambda: defaultdict(RatedUsage))
    filtered = filters.keys(where)
    if filtered - set(KEYS):
        return found
    parts, rest = rolled_up.of_fleet(edges, now, by_node="node" in {*keys, *filtered})
    if rolled_up.is_too_long(rest):
        return None
    for part in [*parts, *(one for piece in rest for one in _from_ledger(piece))]:
        values = {"cluster": part.cluster, "flavor": part.flavor, "node": part.node}
        if part.category != Category.HELD and filters.may_keep(where, values):
            names = tuple((values[key] or UNALLOCATED) if key in values else IDLE for key in keys)
            group = Window(edges[part.step - 1], edges[part.step]), names
            price = None if part.price is None else Fraction(part.price)
            found[group][part.category] += rated(part.gpu_hours, price)
    return found


def is_known(
    keys: Sequence[str],
    where: Filter,
    since: Mapping[str, datetime | None],
    window: Window,
    names: Sequence[str],
) -> bool:
    """Return whether what nobody held in a row is known: the capacity of its clusters is recorded from its window's
    start on. ``since`` is by cluster. Known is also that a row of other keys than KEYS, or with a filter by them, has
    nothing of it.
    """
    if filters.keys(where) - set(KEYS) or (set(keys) - set(KEYS) and IDLE not in names):
        return True
    values = dict(zip(keys, names, strict=True))
    clusters = [values["cluster"]] if "cluster" in values else [one for one in since if keeps_cluster(where, one)]
    return all((at := since.get(cluster)) is not None and at <= window.start for cluster in clusters)


def keeps_cluster(where: Filter, cluster: str) -> bool:
    """Return whether the filter keeps something of a cluster."""
    return filters.may_keep(where, {"cluster": cluster})


def _from_ledger(rest: Rest) -> Iterator[FleetPart]:
    ledger = rollups.read(rest.cluster, rest.start, rest.end)
    for row in rollups.rows(ledger, rest.start, rest.end):
        hours = Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
        yield FleetPart(rest.step, rest.cluster, row.flavor, Category(row.category), row.price, hours, row.node)
