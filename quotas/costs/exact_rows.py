"""Reads the rows of an answer about costs, exact, by step and from the highest cost; rounding comes after all of them.

Rows of a few steps can be read at a time, so that an answer of many is never in memory as a whole.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from portal.core import money
from quotas.costs import idle_views, month_charges, month_factors
from quotas.costs.cost_rows import COLUMNS, UNPRICED
from quotas.costs.fleet_costs import NotHeld, Readings
from quotas.costs.ledger import Sum
from quotas.costs.month_charges import MonthCharges
from quotas.costs.questions import HIDDEN, Question
from quotas.costs.rating import Window
from quotas.metering import ledger_starts, rolled_up
from quotas.metering.parts import Category

Since = Mapping[str, datetime | None]
IDLE_COST = COLUMNS[Category.IDLE]
_NOTHING: Mapping[str, str | None] = {UNPRICED: money.hours_text(0)}
_NOT_KNOWN: Mapping[str, str | None] = dict.fromkeys([*COLUMNS.values(), UNPRICED])
_IDLE_NOT_KNOWN: Mapping[str, str | None] = dict.fromkeys([IDLE_COST, UNPRICED])


class ExactRow(NamedTuple):
    """What was used, the columns of what nobody is charged for, and what is rounded over all rows: the idle cost, None
    without a price, and what bills and fixed costs add, None if not known. These three are multiplied by the factor.
    """

    used: Sum
    others: Mapping[str, str | None]
    idle: Fraction | None
    adjustment: Fraction | None
    shared: Fraction | None


class ExactAnswer(NamedTuple):
    """Rows, and what bills and fixed costs add. ``since`` is when the capacity of clusters is recorded."""

    rows: list[ExactRow]
    currency: str
    charges: MonthCharges
    since: Since


def whole(question: Question, readings: Readings | None = None) -> ExactAnswer:
    """Return all rows. Answers with the same ``readings`` share what they read."""
    currency, is_entered = month_charges.currency_and_existence()
    since = _recorded_since(question)
    readings = readings or _readings(question, is_entered=is_entered)
    found, others = readings.held(question), idle_views.not_held(question, readings)
    charges = month_charges.read(question, readings) if is_entered else MonthCharges()
    return ExactAnswer(_rows(question, found, others, charges, since), currency, charges, since)


def by_parts(question: Question, steps: int) -> Iterator[ExactAnswer]:
    """Yield the same rows, those of so many steps at a time, in as many times the queries of ``whole``."""
    if len(question.edges) <= steps + 1:
        yield whole(question)
        return
    currency, is_entered = month_charges.currency_and_existence()
    since, now = _recorded_since(question), question.now
    reads_fleet = idle_views.reads_fleet(question) and rolled_up.is_read(question.edges, now)
    months = month_factors.read(question, Readings(now)) if is_entered and question.window.start < now else None
    for part in question.parts(steps):
        readings = _readings(part, is_entered=months is not None, reads_fleet=reads_fleet)
        found, others = readings.held(part), idle_views.not_held(part, readings)
        charges = month_charges.read(part, readings, months) if months else MonthCharges()
        yield ExactAnswer(_rows(part, found, others, charges, since), currency, charges, since)


def _recorded_since(question: Question) -> Since:
    return {} if question.idle_view == HIDDEN else ledger_starts.capacity_recorded_since()


def _readings(question: Question, *, is_entered: bool, reads_fleet: bool = True) -> Readings:
    window = question.window
    cuts = month_factors.starts(window.start, window.end) if is_entered else ()
    return Readings(question.now, cuts, reads_fleet=reads_fleet)


def _rows(
    question: Question, found: list[Sum], others: NotHeld | None, charges: MonthCharges, since: Since
) -> list[ExactRow]:
    """Return the rows of what is held, of what nobody is charged for, and of what bills and fixed costs add."""
    if others is not None:
        for group, lines in charges.fleet.items():
            others.setdefault(group, {}).update(lines)
    nothing = Sum(question.window, (), per_gpu_hour=found[0].per_gpu_hour if found else 1)
    known = {one[:2] for one in found}
    added = dict.fromkeys([*(others or ()), *charges.groups()])
    found += [nothing._replace(window=group[0], names=group[1]) for group in added if group not in known]
    found.sort(key=lambda one: (one.window.start, -one.cost, one.names))
    factors = {window: question.factor(window) for window in (Window(*bounds) for bounds in pairwise(question.edges))}
    groups = [one[:2] for one in found]
    of_months = [month_charges.scaled(of, groups, factors) for of in (charges.adjustment, charges.shared)]
    parts = zip(found, *of_months, strict=True)
    return [_row(question, others, since, factors, *part) for part in parts]


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
    if question.idle_view == HIDDEN and not usages:
        return ExactRow(one, _NOTHING, None, adjustment, shared)
    factor = factors[one.window]
    costs = {COLUMNS[of]: usage.cost for of, usage in usages.items()}
    scaled = {name: None if cost is None else cost * factor for name, cost in costs.items()}
    idle = scaled.get(IDLE_COST)
    if others is None or not idle_views.is_known(question, since, one):
        return ExactRow(one, _NOT_KNOWN if question.sees_all else _IDLE_NOT_KNOWN, idle, adjustment, shared)
    unpriced = sum((usages[of].unpriced_gpu_hours for of in usages if isinstance(of, Category)), Fraction(0))
    texts = {name: None if cost is None else money.text(cost) for name, cost in scaled.items()}
    return ExactRow(one, {**texts, UNPRICED: money.hours_text(unpriced)}, idle, adjustment, shared)
