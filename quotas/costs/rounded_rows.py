"""Rounds the exact rows of an answer about costs, over all of them or, of run-rates, over those of a step."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

from portal.core import money
from quotas.costs import columns, ledger, month_charges
from quotas.costs.cost_rows import CostRow
from quotas.costs.exact_rows import IDLE_COST, ExactRow
from quotas.costs.ledger import Sum
from quotas.costs.questions import Metric, Question


class Rounded(NamedTuple):
    """The amounts of a row, rounded so that those of all rows add up. ``idle`` is None where it has no price, the last
    two where they are not known.
    """

    gpu_hours: Decimal
    unpriced: Decimal
    cost: Decimal
    idle: Decimal | None
    adjustment: str | None
    shared: str | None


def cost_row(question: Question, row: ExactRow, rounded: Rounded, currency: str) -> CostRow:
    """Return the row as an answer has it."""
    used, cost = row.used, None if row.used.is_unpriced else str(rounded.cost)
    others: dict[str, Any] = dict(row.others)
    if others.get(IDLE_COST) is not None:
        others[IDLE_COST] = str(rounded.idle)
    is_all = rounded.adjustment == rounded.shared == "0"
    return CostRow(
        name="/".join(used.names) or columns.ALL,
        properties=dict(zip(question.row_keys, used.names, strict=True)),
        window=used.window,
        gpu_hours=str(rounded.gpu_hours),
        unpriced_gpu_hours=str(rounded.unpriced) if used.unpriced else money.hours_text(0),
        cost=cost,
        total=cost if is_all else month_charges.sum_text(cost, rounded.adjustment, rounded.shared),
        currency=currency,
        adjustment=rounded.adjustment,
        shared_cost=rounded.shared,
        **others,
    )


def cost_rows(question: Question, rows: Sequence[ExactRow], currency: str) -> list[CostRow]:
    """Return all rows of an answer."""
    amounts = _rounded(question, rows)
    return [cost_row(question, row, rounded, currency) for row, rounded in zip(rows, amounts, strict=True)]


def _rounded(question: Question, rows: Sequence[ExactRow]) -> Iterator[Rounded]:
    found = [row.used for row in rows]
    whole = ledger.total(found, question.window).usage
    return map(
        Rounded._make,
        zip(
            _split([one.used for one in found], whole.gpu_hours, money.HOURS_PLACES),
            _split([one.unpriced for one in found], whole.unpriced_gpu_hours, money.HOURS_PLACES),
            _costs(found, whole.priced_cost, question),
            _split_idle([row.idle for row in rows]),
            month_charges.texts([row.adjustment for row in rows]),
            month_charges.texts([row.shared for row in rows]),
            strict=True,
        ),
    )


def rates(question: Question, of_step: Sequence[Sum]) -> list[Decimal]:
    """Return the run-rates of the rows of a step, rounded so that they add up to that of the step."""
    if not of_step:
        return []
    window = of_step[0].window
    rate = ledger.total(of_step, window).usage.priced_cost * question.factor(window)
    return _split([group.cost for group in of_step], rate, money.MONEY_PLACES)


def _costs(found: Sequence[Sum], cost: Fraction, question: Question) -> list[Decimal]:
    if question.metric is Metric.CUMULATIVE:
        return _split([group.cost for group in found], cost, money.MONEY_PLACES)
    steps = groupby(found, key=lambda group: group.window)
    return [amount for _, of_step in steps for amount in rates(question, list(of_step))]


def _split_idle(costs: Sequence[Fraction | None]) -> list[Decimal | None]:
    known = [cost for cost in costs if cost is not None]
    parts = iter(_split(known, sum(known, Fraction(0)), money.MONEY_PLACES))
    return [None if cost is None else next(parts) for cost in costs]


def _split(amounts: Sequence[int | Fraction], total: Fraction, places: int) -> list[Decimal]:
    """Return the parts of the total in proportion to the amounts."""
    return money.split(total, amounts, places) if total else [Decimal(money.text(0, places))] * len(amounts)
