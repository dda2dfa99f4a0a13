"""Reads the rows of an answer about costs, exact, by step and from the highest cost; rounding comes after all of them.

Rows of a few steps can be read at a time, so that an answer of many is never in memory as a whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from portal.core import money
from quotas.costs import idle_views, month_charges, month_factors, run_rates
from quotas.costs.cost_rows import COLUMNS, UNPRICED
from quotas.costs.filters import Filter
from quotas.costs.fleet_costs import NotHeld, Readings
from quotas.costs.idle_views import HIDDEN, IdleView
from quotas.costs.ledger import Sum
from quotas.costs.month_charges import MonthCharges
from quotas.costs.month_factors import Months
from quotas.costs.rating import Window
from quotas.costs.run_rates import Metric
from quotas.metering import ledger_starts, rolled_up
from quotas.metering.parts import Category

Since = Mapping[str, datetime | None]
IDLE_COST = COLUMNS[Category.IDLE]
_NOTHING: Mapping[str, str | None] = {UNPRICED: money.hours_text(0)}
_NOT_KNOWN: Mapping[str, str | None] = dict.fromkeys([*COLUMNS.values(), UNPRICED])
_IDLE_NOT_KNOWN: Mapping[str, str | None] = dict.fromkeys([IDLE_COST, UNPRICED])


@dataclass(frozen=True)
class Question:
    """What is asked: the ``edges`` of the steps, and what is ``kept``, of all teams or not, ``until`` when."""

    edges: Sequence[datetime]
    keys: Sequence[str]
    kept: Filter
    until: datetime
    idle: IdleView
    metric: Metric
    sees_all: bool

    @property
    def window(self) -> Window:
        return Window(self.edges[0], self.edges[-1])

    def factor(self, window: Window) -> Fraction:
        """Return by what the money of a window is multiplied."""
        return run_rates.factor(self.metric, window, self.until)


class ExactRow(NamedTuple):
    """What was used, the columns of what nobody is charged for, and what is rounded over all rows: the idle cost, None
    without a price, and what bills and fixed costs add, None if not known. These three are multiplied by the factor.
    """

    used: Sum
    others: Mapping[str, str | None]
    idle: Fraction | None
    adjustment: Fraction | None
    shared: Fraction | None


class Read(NamedTuple):
    """Rows, and what bills and fixed costs add to them. ``since`` is when the capacity of clusters is recorded."""

    rows: list[ExactRow]
    charges: MonthCharges
    since: Since


def whole(question: Question, readings: Readings | None = None, *, is_entered: bool) -> Read:
    """Return all rows. ``is_entered`` says whether any bill or fixed cost was entered. Answers with the same
    ``readings`` share what they read.
    """
    since = {} if question.idle == HIDDEN else ledger_starts.capacity_recorded_since()
    return _read(question, question.edges, since, readings, is_entered=is_entered)


def by_parts(question: Question, steps: int, *, is_entered: bool) -> Iterator[list[ExactRow]]:
    """Yield the same rows, those of so many steps at a time, in as many times the queries of ``whole``."""
    edges, until = question.edges, question.until
    if len(edges) <= steps + 1:
        yield whole(question, is_entered=is_entered).rows
        return
    since = {} if question.idle == HIDDEN else ledger_starts.capacity_recorded_since()
    start, end = edges[0], edges[-1]
    is_known = not idle_views.reads_fleet(question.idle, question.kept) or rolled_up.is_read(edges, until)
    months = None
    if is_entered and start < until:
        months = month_factors.read(start, min(end, until), until, Readings(until))
    for first in range(0, len(edges) - 1, steps):
        part = edges[first : first + steps + 1]
        yield _read(question, part, since, is_entered=months is not None, months=months, is_fleet_known=is_known).rows


def _read(
    question: Question,
    edges: Sequence[datetime],
    since: Since,
    readings: Readings | None = None,
    *,
    is_entered: bool,
    months: Months | None = None,
    is_fleet_known: bool = True,
) -> Read:
    keys, kept, until, idle = question.keys, question.kept, question.until, question.idle
    shows_fleet = question.sees_all and idle != HIDDEN and is_fleet_known
    if readings is None:
        readings = Readings(until, month_factors.starts(edges[0], edges[-1]) if is_entered else ())
    found = readings.held(edges, keys, kept)
    others = idle_views.not_held(idle, edges, keys, kept, until, readings) if is_fleet_known else None
    charges = MonthCharges()
    if is_entered:
        sees_all = question.sees_all if months is None else shows_fleet
        charges = month_charges.read(
            edges, keys, kept, until, readings, fleet=shows_fleet, sees_all=sees_all, months=months
        )
    if others is not None:
        for group, lines in charges.fleet.items():
            others.setdefault(group, {}).update(lines)
    base = found[0].per_gpu_hour if found else 1
    nothing = Sum(question.window, (), per_gpu_hour=base)
    known = {one[:2] for one in found}
    added = dict.fromkeys([*(others or ()), *charges.groups()])
    found += [nothing._replace(window=group[0], names=group[1]) for group in added if group not in known]
    found.sort(key=lambda one: (one.window.start, -one.cost, one.names))
    factors = {window: question.factor(window) for window in (Window(*bounds) for bounds in pairwise(edges))}
    groups = [one[:2] for one in found]
    of_months = [month_charges.scaled(of, groups, factors) for of in (charges.adjustment, charges.shared)]
    parts = zip(found, *of_months, strict=True)
    return Read([_row(question, others, since, factors, *part) for part in parts], charges, since)


def _row(
    question: Question,
    others: NotHeld | None,
    since: Since,
    factors: Mapping[Window, Fraction],
    one: Sum,
    adjustment: Fraction | None,
    shared: Fraction | None,
) -> ExactRow:
    usages = (others or {}).get(one[:2], {})
    if question.idle == HIDDEN and not usages:
        return ExactRow(one, _NOTHING, None, adjustment, shared)
    factor = factors[one.window]
    costs = {COLUMNS[of]: usage.cost for of, usage in usages.items()}
    scaled = {name: None if cost is None else cost * factor for name, cost in costs.items()}
    idle = scaled.get(IDLE_COST)
    if others is None or not idle_views.is_known(question.idle, question.keys, question.kept, since, one):
        return ExactRow(one, _NOT_KNOWN if question.sees_all else _IDLE_NOT_KNOWN, idle, adjustment, shared)
    unpriced = sum((usages[of].unpriced_gpu_hours for of in usages if isinstance(of, Category)), Fraction(0))
    texts = {name: None if cost is None else money.text(cost) for name, cost in scaled.items()}
    return ExactRow(one, {**texts, UNPRICED: money.hours_text(unpriced)}, idle, adjustment, shared)
