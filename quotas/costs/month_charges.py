"""Reads what bills and fixed costs add to the costs of a window: to what is held, and to what nobody is charged for."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from portal.core import money
from portal.core.reading import read_rows
from quotas.costs import currencies, filters, ledger, month_factors, rates, rating
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.fleet_costs import IDLE, KEYS, PLACE_KEYS, Column, FleetCosts, Group, Readings
from quotas.costs.month_factors import ZERO, Months
from quotas.costs.node_costs import CostPart
from quotas.costs.price_variance import UNKNOWN, CostLine
from quotas.costs.questions import HIDDEN, Question
from quotas.costs.rating import MICROSECOND, RatedUsage, Window
from quotas.metering.parts import Category

_CURRENCY_AND_EXISTENCE = f"""
    SELECT {currencies.CURRENCY} AS currency,
        EXISTS (SELECT FROM costs_bill) OR EXISTS (SELECT FROM costs_sharedcost) AS is_entered
"""  # noqa: S608 (an expression of constants)


@dataclass
class MonthCharges:
    """What is added to groups of what is held, None if it is not known, and to lines of what nobody is charged for.

    ``billed_share`` is the part of the cost of capacity, in clusters and months, that bills cover. ``months`` are those
    of the window, None if nothing was entered for them.
    """

    months: Months | None = None
    adjustment: dict[Group, Fraction | None] = field(default_factory=dict)
    shared: dict[Group, Fraction | None] = field(default_factory=dict)
    fleet: dict[Group, dict[Column, RatedUsage]] = field(default_factory=lambda: defaultdict(dict))
    billed_share: Fraction | None = None

    def groups(self) -> set[Group]:
        """Return the groups to which something is added, or may be."""
        return {*self.adjustment, *self.shared, *self.fleet}


def currency_and_existence() -> tuple[str, bool]:
    """Return the currency of all amounts, and whether any bill or fixed cost was entered; one query."""
    [row] = read_rows(_CURRENCY_AND_EXISTENCE)
    return row.currency or rates.NO_PRICE_YET, row.is_entered


class Texts:
    """Makes decimal strings of amounts with a sign, one after the other, that add up to their rounded sum: each is the
    difference of two rounded sums of those before it. "0" is nothing, None is not known.
    """

    def __init__(self) -> None:
        self._exact, self._rounded = ZERO, Decimal(0)

    def text(self, amount: Fraction | None) -> str | None:
        """Return the text of the next amount."""
        if not amount:
            return None if amount is None else "0"
        self._exact += amount
        before, self._rounded = self._rounded, Decimal(money.text(self._exact))
        return str(self._rounded - before)


def texts(amounts: Iterable[Fraction | None]) -> list[str | None]:
    """Return the texts of all amounts."""
    each = Texts()
    return [each.text(amount) for amount in amounts]


def scaled(
    amounts: Mapping[Group, Fraction | None], groups: Iterable[Group], factors: Mapping[Window, Fraction]
) -> list[Fraction | None]:
    """Return what is added to each group, multiplied by the factor of its window; None if it is not known."""
    if not amounts:
        return [ZERO for _ in groups]
    found = ((group, amounts.get(group, ZERO)) for group in groups)
    return [None if amount is None else amount * factors[group[0]] for group, amount in found]


def total(amounts: Mapping[Group, Fraction | None], factor: Fraction = rating.ONE) -> Fraction | None:
    """Return the sum multiplied by a factor; None if an amount is not known."""
    known = [amount for amount in amounts.values() if amount is not None]
    return sum(known, ZERO) * factor if len(known) == len(amounts) else None


def whole_text(cost: Fraction | None, added: Sequence[Fraction | None]) -> str | None:
    """Return what is charged in all, with what bills and fixed costs add, as a decimal string; None if not known."""
    return sum_text(None if cost is None else money.text(cost), *texts(added))


def sum_text(*amounts: str | None) -> str | None:
    """Return the sum of decimal strings; None if any is not known."""
    known = [amount for amount in amounts if amount is not None]
    return str(sum(map(Decimal, known), Decimal(0))) if len(known) == len(amounts) else None


def read(question: Question, readings: Readings, months: Months | None = None) -> MonthCharges:
    """Return what bills and fixed costs add to the groups of ``ledger.sums``, and for who sees all to what nobody is
    charged for, and what bills cover. A fixed number of queries. ``months`` are those of a time of which the window is
    a part; unless given, they are read.
    """
    found = of_held(question, readings, months)
    if question.sees_all and found.months and not filters.keys(question.scope) - set(PLACE_KEYS):
        cuts = _cuts(question, found.months)
        if costs := readings.between(cuts):
            found.billed_share = _billed_share(found.months, cuts, costs, question.scope)
            if question.idle_view != HIDDEN:
                _add_fleet(found, found.months, costs, question, cuts)
    return found


def of_held(question: Question, readings: Readings, months: Months | None = None) -> MonthCharges:
    """Return what ``read`` does, of what is held alone."""
    if question.window.start >= question.now:
        return MonthCharges()
    months = months or month_factors.read(question, readings)
    found = MonthCharges(months)
    if months is None:
        return found
    for group, window, team, cluster, flavor, hours in _held(question, _cuts(question, months)):
        month = months.at(window.start)
        factors = months.factors[month]
        cost = hours * months.per_gpu_hour.get((month, cluster, flavor), ZERO)
        _add(found.adjustment, group, factors.adjustment.get(cluster, ZERO), cost)
        _add(found.shared, group, factors.shared.get(cluster, ZERO), cost)
        _add(found.shared, group, factors.even.get((team, cluster), ZERO), cost)
    return found


def _cuts(question: Question, months: Months) -> list[datetime]:
    """Return the edges of the question, and the starts of months between them."""
    start, end = question.window.start, question.window.end
    return sorted({*question.edges, *(at for at in months.edges if start < at < end)})


def _held(question: Question, cuts: Sequence[datetime]) -> Iterator[tuple[Group, Window, str, str, str, Fraction]]:
    """Yield what is held between two cuts: its group, the cut, team, cluster, flavor, and GPU-hours; one query."""
    more = ("team", "cluster", "flavor")
    columns = list(dict.fromkeys([*question.row_keys, *more]))
    for one in ledger.sums(cuts, columns, question.scope, question.now):
        values = dict(zip(columns, one.names, strict=True))
        group = _step(question, one.window.start), tuple(values[key] for key in question.row_keys)
        team, cluster, flavor = (values[name] for name in more)
        yield group, one.window, team, cluster, flavor, one.usage.gpu_hours


def _add_fleet(
    found: MonthCharges, months: Months, costs: FleetCosts, question: Question, cuts: Sequence[datetime]
) -> None:
    """Add the lines of what nobody is charged for, of what is left of nodes, and of teams that used nothing."""
    keys, now = question.row_keys, question.now
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
        if filters.may_keep(question.scope, values):
            names = tuple((values[key] or UNALLOCATED) if key in values else IDLE for key in keys)
            group = _step(question, cuts[step - 1]), names
            factors = months.factors[months.at(cuts[step - 1])]
            _add_line(found, group, CostLine.IDLE_ADJUSTMENT, factors.adjustment.get(cluster, ZERO), cost)
            _add_line(found, group, CostLine.IDLE_SHARED_COST, factors.shared.get(cluster, ZERO), cost)
    if not filters.keys(question.scope):
        for start, end in pairwise(cuts):
            if start >= now:
                break
            month = months.at(start)
            passed = min(months.edges[month + 1], now) - months.edges[month]
            part = Fraction((min(end, now) - start) // MICROSECOND, passed // MICROSECOND)
            names = tuple(UNALLOCATED if key in KEYS else IDLE for key in keys)
            group = _step(question, start), names
            _add_line(found, group, CostLine.IDLE_SHARED_COST, months.factors[month].unused, part)


def _billed_share(months: Months, cuts: Sequence[datetime], costs: FleetCosts, where: Filter) -> Fraction | None:
    """Return the part of the cost of capacity that bills cover; None if nothing costs anything."""
    total = billed = ZERO
    for one in costs.capacity:
        step, cluster, flavor = one.place
        if filters.may_keep(where, {"cluster": cluster, "flavor": flavor}):
            total += one.cost
            billed += one.cost if (months.at(cuts[step - 1]), cluster) in months.billed else 0
    return billed / total if total else None


def _step(question: Question, moment: datetime) -> Window:
    edges = question.edges
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
