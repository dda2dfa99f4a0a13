"""Views of idle cost: in rows of its own, hidden, shared between holders, or with whose unused quota it is.

All are computed from the same facts, and move cost between rows only: what is held, and what is idle, add up to the
same in each of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from portal.core.errors import Forbidden
from quotas.catalog import selectors as catalog
from quotas.costs import filters, fleet_costs, ledger
from quotas.costs.filters import EVERYTHING, UNALLOCATED, Filter
from quotas.costs.fleet_costs import IDLE, NotHeld, Readings
from quotas.costs.ledger import Sum
from quotas.costs.rating import RatedUsage, Window
from quotas.metering.parts import Category
from quotas.metering.rolled_up import Detail, FleetPart

Scope = tuple[str, ...]


class IdleMode(StrEnum):
    SEPARATE = "separate"
    HIDE = "hide"
    SHARE = "share"
    OWNER = "owner"


class IdleBy(StrEnum):
    """Between the holders of what idle cost is shared."""

    CLUSTER = "cluster"
    FLAVOR = "flavor"
    NODE = "node"


class IdleSplit(StrEnum):
    """In proportion to cost, or evenly between the rows of the answer."""

    WEIGHTED = "weighted"
    EVEN = "even"


@dataclass(frozen=True)
class IdleView:
    """``by`` and ``split`` are for ``share``."""

    mode: IdleMode = IdleMode.SEPARATE
    by: IdleBy = IdleBy.CLUSTER
    split: IdleSplit = IdleSplit.WEIGHTED


HIDDEN = IdleView(IdleMode.HIDE)


def for_person(view: IdleView | None, *, sees_all: bool) -> IdleView:
    """Return the view, by default the one with most that the person may see. Raises Forbidden for one that tells what
    all teams together use.
    """
    if view is None:
        return IdleView() if sees_all else HIDDEN
    if not sees_all and view.mode in (IdleMode.SEPARATE, IdleMode.SHARE):
        raise Forbidden(
            "auditor",
            detail=f"idle={view.mode.value} tells what all teams together use. Operators and auditors see it.",
            hint="Use idle=hide, or idle=owner for what your teams have and do not use.",
        )
    return view


def not_held(
    view: IdleView,
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
    readings: Readings,
) -> NotHeld | None:
    """Return what nobody is charged for, as ``fleet_costs.not_held``, with the idle in the rows of the view."""
    match view.mode:
        case IdleMode.HIDE:
            return {}
        case IdleMode.SEPARATE:
            return fleet_costs.not_held(edges, keys, where, readings)
        case IdleMode.OWNER:
            return fleet_costs.not_held(edges, keys, where, readings, by_owner=True)
        case IdleMode.SHARE:
            return _shared(view, edges, keys, where, now, readings)


def reads_fleet(view: IdleView, where: Filter) -> bool:
    """Return whether ``not_held`` reads the hours of the fleet."""
    match view.mode:
        case IdleMode.HIDE:
            return False
        case IdleMode.SHARE:
            return True
    return fleet_costs.is_of_fleet(where, by_owner=view.mode is IdleMode.OWNER)


def is_known(
    view: IdleView,
    keys: Sequence[str],
    where: Filter,
    since: Mapping[str, datetime | None],
    row: Sum,
) -> bool:
    """Return whether what nobody held in a row is known, as ``fleet_costs.is_known``."""
    if view.mode == IdleMode.HIDE:
        return True
    if view.mode == IdleMode.SEPARATE:
        return fleet_costs.is_known(keys, where, since, row.window, row.names)
    values = dict(zip(keys, row.names, strict=True))
    if view.mode == IdleMode.OWNER:
        known = fleet_costs.known_keys(by_owner=True)
        if filters.keys(where) - known or any(values[key] != IDLE for key in values.keys() - known):
            return True
    kept = [one for one in since if fleet_costs.keeps_cluster(where, one)]
    clusters = [values["cluster"]] if "cluster" in values else kept
    return all((at := since.get(cluster)) is not None and at <= row.window.start for cluster in clusters)


def _shared(
    view: IdleView,
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
    readings: Readings,
) -> NotHeld | None:
    """Return what nobody holds, with the idle in the rows of those who held something of the same cluster, flavor or
    node in the same step. What was idle where nobody held anything stays in its own row.
    """
    detail = Detail.NODE if view.by == IdleBy.NODE else fleet_costs.by_node(keys, where)
    costs = readings.between(edges, detail)
    if costs is None:
        return None
    of_scope = _Scopes(view.by)
    shares = _shares(view, edges, keys, where, now, of_scope)
    apart, idle = [], defaultdict[tuple[Window, Scope], RatedUsage](RatedUsage)
    for part in costs.parts:
        place = Window(edges[part.step - 1], edges[part.step]), of_scope.of_part(part)
        if part.category == Category.IDLE and place in shares:
            idle[place] += fleet_costs.usage(part)
            apart.append(part._replace(gpu_hours=Fraction(0)))
        else:
            apart.append(part)
    found = fleet_costs.grouped(apart, costs.lines(), edges, keys, where)
    for (window, scope), usage in idle.items():
        for names, weight in shares[window, scope]:
            found.setdefault((window, names), defaultdict(RatedUsage))[Category.IDLE] += _part_of(usage, weight)
    return found


class _Scopes:
    """What of the fleet shares its idle cost: a cluster, a flavor of it, or a node. Where Kubernetes names no GPU, the
    node is not known, and it is the flavor.
    """

    def __init__(self, by: IdleBy) -> None:
        self.keys = {
            IdleBy.CLUSTER: ("cluster",),
            IdleBy.FLAVOR: ("cluster", "flavor"),
            IdleBy.NODE: ("cluster", "flavor", "node"),
        }[by]
        self._with_nodes = catalog.names_with_known_nodes() if by == IdleBy.NODE else set[str]()

    def of_part(self, part: FleetPart) -> Scope:
        return self.of_values({"cluster": part.cluster, "flavor": part.flavor, "node": part.node})

    def of_values(self, values: Mapping[str, str]) -> Scope:
        """Return the scope of what has these values by key."""
        if "node" in self.keys and values["flavor"] not in self._with_nodes:
            values = {**values, "node": ""}
        return tuple(values[key] for key in self.keys)


Shares = dict[tuple[Window, Scope], list[tuple[tuple[str, ...], Fraction]]]


def _shares(
    view: IdleView,
    edges: Sequence[datetime],
    keys: Sequence[str],
    where: Filter,
    now: datetime,
    of_scope: _Scopes,
) -> Shares:
    """Return which rows have which part of a scope's idle cost: parts of one, as far as the filter keeps their rows."""
    every = tuple(dict.fromkeys([*keys, *sorted(filters.keys(where)), *of_scope.keys]))
    held: dict[tuple[Window, Scope], list[Sum]] = defaultdict(list)
    for one in ledger.sums(edges, every, EVERYTHING, now):
        held[one.window, of_scope.of_values(_values(every, one.names))].append(one)
    found: Shares = {}
    for place, sums in held.items():
        found[place] = [
            (one.names[: len(keys)], weight)
            for one, weight in _weights(view.split, sums, len(keys))
            if filters.may_keep(where, _values(every, one.names))
        ]
    return found


def _values(keys: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the values of a row of ``ledger.sums`` by key, as the ledger has them: what is unknown is empty."""
    return {key: "" if name == UNALLOCATED else name for key, name in zip(keys, names, strict=True)}


def _weights(split: IdleSplit, sums: Iterable[Sum], length: int) -> Iterator[tuple[Sum, Fraction]]:
    """Yield each sum with its part of one: by cost, or by GPU-hours if all cost nothing. Evenly is between the rows,
    which the first ``length`` names tell apart.
    """
    rows: dict[tuple[str, ...], list[Sum]] = defaultdict(list)
    for one in sums:
        rows[one.names[:length] if split == IdleSplit.EVEN else ()].append(one)
    for of_row in rows.values():
        amounts = [one.cost for one in of_row]
        if not any(amounts):
            amounts = [one.used for one in of_row]
        for one, amount in zip(of_row, amounts, strict=True):
            yield one, Fraction(amount, sum(amounts) * len(rows))


def _part_of(usage: RatedUsage, weight: Fraction) -> RatedUsage:
    return RatedUsage(usage.gpu_hours * weight, usage.unpriced_gpu_hours * weight, usage.priced_cost * weight)
