"""What the GPU-hours cost that nobody is charged for: idle, stranded, unavailable, unmanaged, and variance.

Nobody but platform staff may see them: they tell what all teams together use.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from quotas.costs import rollups
from quotas.costs.ledger import UNALLOCATED
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.costs.rollups import Ledger
from quotas.metering import rolled_up
from quotas.metering.hours import HOUR, hour_of, hours_between
from quotas.metering.idle_owners import PARTS
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category
from quotas.metering.rolled_up import Detail, FleetPart, Rest

IDLE = "__idle__"
"""OpenCost's name for what nobody holds: the value of every key but cluster and flavor."""
KEYS = ("cluster", "flavor")
OWNER_KEYS = ("department", "team")
Group = tuple[Window, tuple[str, ...]]
NotHeld = dict[Group, dict[Category, RatedUsage]]


def not_held(
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Mapping[str, Collection[str]],
    now: datetime,
    *,
    by_owner: bool = False,
) -> NotHeld | None:
    """Return the GPU-hours of every category but held, as ``ledger.sums``; None if too much of the window is not rolled
    up. A filter by anything but cluster and flavor leaves none.

    ``by_owner``: what is idle has the department and team whose unused quota it is, also for a filter by them.
    """
    if where.keys() - _known(by_owner=by_owner):
        return {}
    parts = of_fleet(edges, now, Detail.OWNER if by_owner else Detail.NONE)
    return None if parts is None else grouped(parts, edges, keys, where, by_owner=by_owner)


def grouped(
    parts: Iterable[FleetPart],
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Mapping[str, Collection[str]],
    *,
    by_owner: bool = False,
) -> NotHeld:
    """Return every category but held of these parts, as ``not_held``."""
    known = _known(by_owner=by_owner)
    found: NotHeld = {}
    if where.keys() - known:
        return found
    for part in parts:
        if part.category != Category.HELD and all(getattr(part, key) in kept for key, kept in where.items()):
            group = Window(edges[part.step - 1], edges[part.step]), tuple(_name(part, key, known) for key in keys)
            found.setdefault(group, defaultdict(RatedUsage))[part.category] += usage(part)
    for group, of_group in list(found.items()) if by_owner else ():
        if Category.IDLE in of_group and not of_group[Category.IDLE].gpu_hours:  # all of it has an owner
            del of_group[Category.IDLE]
        if not of_group:
            del found[group]
    return found


def _known(*, by_owner: bool) -> set[str]:
    """Return the keys of which what nobody holds has values."""
    return {*KEYS, *OWNER_KEYS} if by_owner else set(KEYS)


def of_fleet(edges: Sequence[datetime], now: datetime, detail: Detail) -> list[FleetPart] | None:
    """Return what the fleet had in each step, rolled up and from the ledger; None if too much is not rolled up."""
    parts, rest = rolled_up.of_fleet(edges, now, detail)
    if rolled_up.is_too_long(rest):
        return None
    return [*parts, *(one for piece in rest for one in _from_ledger(piece, detail))]


def usage(part: FleetPart) -> RatedUsage:
    return rated(part.gpu_hours, None if part.price is None else Fraction(part.price))


def _name(part: FleetPart, key: str, known: Collection[str]) -> str:
    """Return the value of a key of what nobody holds."""
    value: str = getattr(part, key) if key in known else ""
    return value or (UNALLOCATED if key in KEYS else IDLE)


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


def _from_ledger(rest: Rest, detail: Detail) -> Iterator[FleetPart]:
    ledger = rollups.read(rest.cluster, rest.start, rest.end)
    for row in rollups.rows(ledger, rollups.split(ledger, rest.start, rest.end), rest.start):
        hours = Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
        node = row.node if detail == Detail.NODE and row.is_gpu else ""
        yield FleetPart(rest.step, rest.cluster, row.flavor, Category(row.category), row.price, hours, node)
    if detail == Detail.OWNER:
        yield from _owned(ledger, rest)


def _owned(ledger: Ledger, rest: Rest) -> Iterator[FleetPart]:
    """Yield what is idle of each owner, and the same taken off what has none; by hour, as it is rolled up."""
    for begin in hours_between(hour_of(rest.start), rest.end):
        start, end = max(begin, rest.start), min(begin + HOUR, rest.end)
        for row in rollups.owned_rows(rest.cluster, ledger, rollups.split(ledger, start, end), start, end):
            hours = Fraction(row.amount) / (PARTS * MICROSECONDS_PER_HOUR)
            part = FleetPart(rest.step, rest.cluster, row.flavor, Category.IDLE, row.price, hours)
            yield part._replace(department=row.department, team=row.team)
            yield part._replace(gpu_hours=-hours)
