"""What nobody is charged for: idle, stranded, unavailable and unmanaged GPU-hours, variance, and what nodes cost beyond
the price of their GPUs.

Nobody but platform staff may see them: they tell what all teams together use.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from quotas.costs import capacity_costs, filters, ledger, price_variance, rollups
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.ledger import Sum
from quotas.costs.price_variance import CostLine, Place, PlaceCost
from quotas.costs.questions import Question
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.costs.rollups import Ledger
from quotas.metering import rolled_up
from quotas.metering.hours import HOUR, hour_of, hours_between
from quotas.metering.idle_owners import PARTS
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category
from quotas.metering.rolled_up import Detail, FleetPart, Rest

IDLE = "__idle__"
"""OpenCost's name for what nobody holds: the value of every key but KEYS."""
KEYS = ("cluster", "flavor", "node")
PLACE_KEYS = ("cluster", "flavor")
"""Those of which what nodes cost beyond their price has a value, and what is idle of an owner."""
OWNER_KEYS = ("department", "team")
Group = tuple[Window, tuple[str, ...]]
Column = Category | CostLine
NotHeld = dict[Group, dict[Column, RatedUsage]]
Line = tuple[Place, CostLine, RatedUsage]


class FleetCosts(NamedTuple):
    """All GPU-hours of the fleet by step, and what capacity cost."""

    parts: Sequence[FleetPart]
    capacity: Sequence[PlaceCost]

    def by_steps(self, steps: Sequence[datetime], edges: Sequence[datetime]) -> "FleetCosts":
        """Return the same, which was read between ``steps``, by the same or longer steps between ``edges``."""
        if len(steps) == len(edges):
            return self
        place = [0, *(bisect_right(edges, start) for start in steps)]
        return FleetCosts(
            [part._replace(step=place[part.step]) for part in self.parts],
            [replace(one, place=(place[one.place[0]], *one.place[1:])) for one in self.capacity],
        )

    def lines(self) -> Iterator[Line]:
        """Yield what nodes cost beyond the price of their GPUs."""
        rated_parts = (((one.step, one.cluster, one.flavor), usage(one)) for one in self.parts)
        return price_variance.lines(rated_parts, self.capacity)


class Readings:
    """What answers about one time read of the ledger: what is read once serves whoever asks for the same time in the
    same or longer steps, with the same or no detail.

    ``steps`` are moments at which some answer cuts time, and ``cuts`` those at which only the fleet's hours are cut.
    Unless it ``reads_fleet``, these hours count as not rolled up.
    """

    def __init__(
        self,
        now: datetime,
        cuts: Collection[datetime] = (),
        steps: Collection[datetime] = (),
        *,
        reads_fleet: bool = True,
    ) -> None:
        self._now, self._cuts, self._steps, self._reads_fleet = now, cuts, steps, reads_fleet
        self._held: list[tuple[Sequence[datetime], Sequence[str], Filter, Sequence[Sum]]] = []
        self._read: dict[tuple[tuple[datetime, ...], Detail], FleetCosts | None] = {}

    def held(self, question: Question) -> list[Sum]:
        """Return what ``ledger.sums`` does. What was read with a wider filter serves too, if it has the keys by which
        the other is narrower.
        """
        edges, keys, where = question.edges, question.row_keys, question.scope
        steps = _cut(edges, self._steps)
        for known, of, kept, found in self._held:
            more = filters.beyond(where, kept)
            if more is not None and _serves(known, steps) and {*keys, *filters.keys(more)} <= {*of}:
                if more.parts:
                    found = [one for one in found if filters.may_keep(more, one.values(of))]
                return ledger.regrouped(found, of, edges, keys)
        sums = ledger.sums(steps, keys, where, self._now)
        if not self._steps:
            return sums
        self._held.append((steps, keys, where, sums))
        return ledger.regrouped(sums, keys, edges, keys)

    def between(self, edges: Sequence[datetime], detail: Detail = Detail.NONE) -> FleetCosts | None:
        """Return what ``read`` does."""
        if not self._reads_fleet:
            return None
        steps = tuple(_cut(edges, [*self._cuts, *self._steps]))
        for (known, of_detail), found in self._read.items():
            if _serves(known, steps) and detail in (Detail.NONE, of_detail):
                return found and found.by_steps(known, edges)
        found = self._read[steps, detail] = read(steps, self._now, detail)
        return found and found.by_steps(steps, edges)


def _cut(edges: Sequence[datetime], cuts: Iterable[datetime]) -> list[datetime]:
    return sorted({*edges, *(cut for cut in cuts if edges[0] < cut < edges[-1])})


def _serves(known: Sequence[datetime], steps: Sequence[datetime]) -> bool:
    """Return whether what was read between ``known`` can be added up by these steps."""
    return (known[0], known[-1]) == (steps[0], steps[-1]) and {*steps} <= {*known}


def read(edges: Sequence[datetime], now: datetime, detail: Detail = Detail.NONE) -> FleetCosts | None:
    """Return what there was between ``edges`` until ``now``; None if too much of it is not rolled up."""
    parts, rest = rolled_up.of_fleet(edges, now, detail)
    if rolled_up.is_too_long(rest):
        return None
    parts += [one for piece in rest for one in _from_ledger(piece, detail)]
    return FleetCosts(parts, capacity_costs.of_fleet(edges, now, rest))


def not_held(question: Question, readings: Readings, *, by_owner: bool = False) -> NotHeld | None:
    """Return the GPU-hours of every category but held, as ``ledger.sums``, and the lines of what nodes cost; None if
    too much of the window is not rolled up. A filter by anything but KEYS leaves none.

    A GPU that a device plugin counts has no node, whether it is held or not: a hold is a count on the flavor, so what
    it leaves is one, too. Of it only the node of unmanaged use is known.

    ``by_owner``: what is idle has the department and team whose unused quota it is, also for a filter by them, and no
    node.
    """
    if not is_of_fleet(question.scope, by_owner=by_owner):
        return {}
    detail = by_node(question)
    costs = readings.between(question.edges, Detail.OWNER if by_owner else detail)
    if costs is None:
        return None
    parts = costs.parts
    if by_owner and detail == Detail.NODE and (placed := readings.between(question.edges, detail)):
        others = (one for one in placed.parts if one.category != Category.IDLE)
        parts = [*(one for one in parts if one.category == Category.IDLE), *others]
    return grouped(question, parts, costs.lines(), by_owner=by_owner)


def is_of_fleet(where: Filter, *, by_owner: bool = False) -> bool:
    """Return whether the filter may keep something of what nobody holds."""
    return not filters.keys(where) - known_keys(by_owner=by_owner)


def by_node(question: Question) -> Detail:
    """Return the detail that the keys and the filter need."""
    return Detail.NODE if "node" in {*question.row_keys, *filters.keys(question.scope)} else Detail.NONE


def grouped(
    question: Question, parts: Iterable[FleetPart], lines: Iterable[Line], *, by_owner: bool = False
) -> NotHeld:
    """Return every category but held of these parts, and these lines, as ``not_held``; without idle of no GPU-hours,
    all of which is in other rows.
    """
    found: NotHeld = {}
    edges, keys, where = question.edges, question.row_keys, question.scope
    if not is_of_fleet(where, by_owner=by_owner):
        return found

    def add(step: int, values: Mapping[str, str], column: Column, amount: RatedUsage) -> None:
        if filters.may_keep(where, values):
            names = tuple(values.get(key) or (UNALLOCATED if key in KEYS else IDLE) for key in keys)
            group = Window(edges[step - 1], edges[step]), names
            if amount is not price_variance.UNKNOWN or group in found:
                found.setdefault(group, defaultdict(RatedUsage))[column] += amount

    for one in parts:
        if one.category != Category.HELD:
            owner = {"department": one.department, "team": one.team}
            values = {"cluster": one.cluster, "flavor": one.flavor, "node": one.node, **owner}
            add(one.step, values, one.category, usage(one))
    nobody = dict.fromkeys(["node", *OWNER_KEYS], "")
    for (step, cluster, flavor), line, amount in lines:
        add(step, {"cluster": cluster, "flavor": flavor, **nobody}, line, amount)
    for group, of_group in list(found.items()):
        if Category.IDLE in of_group and not of_group[Category.IDLE].gpu_hours:
            del of_group[Category.IDLE]
        if not of_group:
            del found[group]
    return found


def usage(part: FleetPart) -> RatedUsage:
    return rated(part.gpu_hours, None if part.price is None else Fraction(part.price))


def known_keys(*, by_owner: bool) -> set[str]:
    """Return the keys of which what nobody holds has values."""
    return {*KEYS, *OWNER_KEYS} if by_owner else set(KEYS)


def is_known(question: Question, since: Mapping[str, datetime | None], row: Sum) -> bool:
    """Return whether what nobody held in a row is known: the capacity of its clusters is recorded from its window's
    start on. ``since`` is by cluster. Known is also that a row of other keys than KEYS, or with a filter by them, has
    nothing of it.
    """
    if filters.keys(question.scope) - set(KEYS) or (set(question.row_keys) - set(KEYS) and IDLE not in row.names):
        return True
    return is_recorded(question, since, row)


def is_recorded(question: Question, since: Mapping[str, datetime | None], row: Sum) -> bool:
    """Return whether the capacity of a row's clusters, of all that the filter keeps unless it has its own, is recorded
    from its window's start on.
    """
    values, scope = dict(zip(question.row_keys, row.names, strict=True)), question.scope
    clusters = [values["cluster"]] if "cluster" in values else [one for one in since if keeps_cluster(scope, one)]
    return all((at := since.get(cluster)) is not None and at <= row.window.start for cluster in clusters)


def keeps_cluster(where: Filter, cluster: str) -> bool:
    """Return whether the filter keeps something of a cluster."""
    return filters.may_keep(where, {"cluster": cluster})


def _from_ledger(rest: Rest, detail: Detail) -> Iterator[FleetPart]:
    ledger = rollups.read(rest.cluster, rest.start, rest.end)
    for row in rollups.rows(ledger, rollups.split(ledger, rest.start, rest.end), rest.start):
        hours = Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
        node = row.node if detail == Detail.NODE else ""
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
