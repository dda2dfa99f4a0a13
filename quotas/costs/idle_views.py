"""Views of idle cost: in rows of its own, hidden, shared between holders, or with whose unused quota it is.

All are computed from the same facts, and move cost between rows only: what is held, and what is idle, add up to the
same in each of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from fractions import Fraction

from quotas.catalog import selectors as catalog
from quotas.costs import filters, fleet_costs, ledger
from quotas.costs.filters import EVERYTHING
from quotas.costs.fleet_costs import IDLE, NotHeld, Readings
from quotas.costs.ledger import Sum
from quotas.costs.questions import IdleBy, IdleMode, IdleSplit, Question
from quotas.costs.rating import RatedUsage, Window
from quotas.metering.parts import Category
from quotas.metering.rolled_up import Detail, FleetPart

Scope = tuple[str, ...]


def not_held(question: Question, readings: Readings) -> NotHeld | None:
    """Return what nobody is charged for, as ``fleet_costs.not_held``, with the idle in the rows of the view."""
    match question.idle_view.mode:
        case IdleMode.HIDE:
            return {}
        case IdleMode.SEPARATE:
            return fleet_costs.not_held(question, readings)
        case IdleMode.OWNER:
            return fleet_costs.not_held(question, readings, by_owner=True)
        case IdleMode.SHARE:
            return _shared(question, readings)


def reads_fleet(question: Question) -> bool:
    """Return whether ``not_held`` reads the hours of the fleet."""
    match question.idle_view.mode:
        case IdleMode.HIDE:
            return False
        case IdleMode.SHARE:
            return True
        case mode:
            return fleet_costs.is_of_fleet(question.scope, by_owner=mode is IdleMode.OWNER)


def is_known(question: Question, since: Mapping[str, datetime | None], row: Sum) -> bool:
    """Return whether what nobody held in a row is known, as ``fleet_costs.is_known``."""
    match question.idle_view.mode:
        case IdleMode.HIDE:
            return True
        case IdleMode.SEPARATE:
            return fleet_costs.is_known(question, since, row)
        case IdleMode.OWNER:
            known, names = fleet_costs.known_keys(by_owner=True), zip(question.row_keys, row.names, strict=True)
            if filters.keys(question.scope) - known or any(key not in known and name != IDLE for key, name in names):
                return True
    return fleet_costs.is_recorded(question, since, row)


def _shared(question: Question, readings: Readings) -> NotHeld | None:
    """Return what nobody holds, with the idle in the rows of those who held something of the same cluster, flavor or
    node in the same step. What was idle where nobody held anything stays in its own row.
    """
    by, edges = question.idle_view.by, question.edges
    costs = readings.between(edges, Detail.NODE if by == IdleBy.NODE else fleet_costs.by_node(question))
    if costs is None:
        return None
    of_scope = _Scopes(by)
    shares = _shares(question, of_scope)
    apart, idle = [], defaultdict[tuple[Window, Scope], RatedUsage](RatedUsage)
    for part in costs.parts:
        place = Window(edges[part.step - 1], edges[part.step]), of_scope.of_part(part)
        if part.category == Category.IDLE and place in shares:
            idle[place] += fleet_costs.usage(part)
            apart.append(part._replace(gpu_hours=Fraction(0)))
        else:
            apart.append(part)
    found = fleet_costs.grouped(question, apart, costs.lines())
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


def _shares(question: Question, of_scope: _Scopes) -> Shares:
    """Return which rows have which part of a scope's idle cost: parts of one, as far as the filter keeps their rows."""
    keys, where = question.row_keys, question.scope
    every = tuple(dict.fromkeys([*keys, *sorted(filters.keys(where)), *of_scope.keys]))
    held: dict[tuple[Window, Scope], list[Sum]] = defaultdict(list)
    for one in ledger.sums(question.edges, every, EVERYTHING, question.now):
        held[one.window, of_scope.of_values(one.values(every))].append(one)
    found: Shares = {}
    for place, sums in held.items():
        found[place] = [
            (one.names[: len(keys)], weight)
            for one, weight in _weights(question.idle_view.split, sums, len(keys))
            if filters.may_keep(where, one.values(every))
        ]
    return found


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
