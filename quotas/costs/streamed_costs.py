"""The rows of `answers.answer` one after the other, however many.

Rounding needs all rows before the first is known. So they are read by steps into a file, and come from it: in memory
are those of some steps, and eight bytes for each amount of the others.
"""

import pickle
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

from portal.core import money
from portal.core.money import Split
from quotas.costs import answers, exact_rows, ledger, month_charges, rounded_rows, steps
from quotas.costs.cost_rows import CostRow
from quotas.costs.exact_rows import ExactRow
from quotas.costs.month_charges import Texts
from quotas.costs.questions import Metric, Question
from quotas.costs.rating import RatedUsage
from quotas.costs.rounded_rows import Rounded
from quotas.metering import ledger_starts

STEPS = 31
"""So many steps are read at a time."""
IN_MEMORY_BYTES = 4_000_000
"""Above it the file is on the disk."""


class _Splits(NamedTuple):
    """The amounts that are rounded over all rows."""

    gpu_hours: Split
    unpriced: Split
    cost: Split
    idle: Split

    def note(self, row: ExactRow) -> None:
        usage = row.used.usage
        self.gpu_hours.note(usage.gpu_hours)
        self.unpriced.note(usage.unpriced_gpu_hours)
        self.cost.note(usage.priced_cost)
        if row.idle is not None:
            self.idle.note(row.idle)

    def rounded(self, row: ExactRow, cost: Decimal, adjustments: Texts, shared: Texts) -> Rounded:
        """Return the amounts of the next row."""
        usage = row.used.usage
        return Rounded(
            self.gpu_hours.part(usage.gpu_hours),
            self.unpriced.part(usage.unpriced_gpu_hours),
            cost,
            None if row.idle is None else self.idle.part(row.idle),
            adjustments.text(row.adjustment),
            shared.text(row.shared),
        )


def rows(question: Question) -> Iterator[CostRow]:
    """Return the rows of the answer, all of them read; raise what `answers.answer` raises."""
    question.check()
    if not question.is_compared:
        return chain.from_iterable(_by_step(question))
    before = question.of_previous_window()
    before.check()
    is_recorded = ledger_starts.unrecorded_until(before.window.start) is None
    return answers.compared(question, _by_step(question), _by_step(before), is_recorded=is_recorded)


def _by_step(question: Question) -> Iterator[list[CostRow]]:
    """Return the rows of each step, all of them read, rounded over all as `answers.answer` does."""
    found = _steps(question)
    next(found)
    return found


def _steps(question: Question) -> Iterator[list[CostRow]]:
    """Yield nothing once all is read, and then the rows of each step. The file is closed even if nobody goes on."""
    currency, used, idle = "", RatedUsage(), Fraction(0)
    with SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
        for part in exact_rows.by_parts(question, STEPS):
            currency = part.currency
            used += ledger.total([row.used for row in part.rows], question.window).usage
            idle += sum((row.idle for row in part.rows if row.idle is not None), Fraction(0))
            pickle.dump(part.rows, file)
        splits = _Splits(
            Split(used.gpu_hours, money.HOURS_PLACES),
            Split(used.unpriced_gpu_hours, money.HOURS_PLACES),
            Split(used.priced_cost),
            Split(idle),
        )
        for row in _read(file):
            splits.note(row)
        yield []
        yield from _rounded(question, _read(file), splits, currency)


def _rounded(question: Question, rows: Iterator[ExactRow], splits: _Splits, currency: str) -> Iterator[list[CostRow]]:
    of_months = month_charges.Texts(), month_charges.Texts()
    for of_step in steps.by_step(question.edges, rows, lambda row: row.used.window.start):
        if question.metric is Metric.CUMULATIVE:
            costs = [splits.cost.part(row.used.usage.priced_cost) for row in of_step]
        else:
            costs = rounded_rows.rates(question, [row.used for row in of_step])
        yield [
            rounded_rows.cost_row(question, row, splits.rounded(row, cost, *of_months), currency)
            for row, cost in zip(of_step, costs, strict=True)
        ]


def _read(file: "SpooledTemporaryFile[bytes]") -> Iterator[ExactRow]:
    file.seek(0)
    while True:
        try:
            yield from pickle.load(file)  # noqa: S301 (what this process wrote)
        except EOFError:
            return
