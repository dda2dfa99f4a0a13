"""Answers questions about costs, each as a whole; `streamed_costs` has the rows one after the other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, pairwise, repeat

from portal.core import money
from quotas.costs import exact_rows, fleet_costs, ledger, month_charges, rounded_rows, steps
from quotas.costs.cost_rows import CostRow, Costs, Past
from quotas.costs.fleet_costs import Readings
from quotas.costs.questions import Question
from quotas.costs.rating import Window
from quotas.metering import ledger_starts


def answer(question: Question, readings: Readings | None = None) -> Costs:
    """Return usage and cost of what may be seen, in a fixed number of queries; of two windows in twice as many. Answers
    with the same `readings` share what they read. Raises Invalid for what cannot be asked.

    Unless `idle` hides it, also what nobody is charged for, in rows of its own (`fleet_costs.IDLE`) if there are keys
    other than `fleet_costs.KEYS`; what is idle in the rows that `idle` says. Each step has rows of its own.

    Amounts are rounded once over the whole answer, by largest remainder: hours to 6 places and money to 4, so that the
    rows add up to the sums. Run-rates (`metric`) of a step add up to that of the step.
    """
    found = _of_window(question, readings)
    if not question.is_compared:
        return found
    asked_before = question.of_previous_window()
    before = _of_window(asked_before)
    unrecorded_until = ledger_starts.unrecorded_until(before.window.start)
    rows = compared(
        question, _by_step(question, found), _by_step(asked_before, before), is_recorded=unrecorded_until is None
    )
    if unrecorded_until is not None:
        before = replace(before, total=None, unrecorded_until=unrecorded_until)
    return replace(found, rows=list(rows), previous=before)


def _by_step(question: Question, found: Costs) -> Iterator[list[CostRow]]:
    return steps.by_step(question.edges, found.rows, lambda row: row.window.start)


def _of_window(question: Question, readings: Readings | None = None) -> Costs:
    question.check()
    rows, currency, charges, since = exact_rows.whole(question, readings)
    whole = ledger.total([one.used for one in rows], question.window).usage
    rate = question.factor(question.window)
    added = [month_charges.total(of, rate) for of in (charges.adjustment, charges.shared)]
    return Costs(
        window=question.window,
        currency=currency,
        rows=rounded_rows.cost_rows(question, rows, currency),
        gpu_hours=money.text(whole.gpu_hours, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(whole.unpriced_gpu_hours),
        total=month_charges.whole_text(None if whole.cost is None else whole.cost * rate, added),
        capacity_recorded_since={
            cluster: at
            for cluster, at in since.items()
            if question.sees_all and fleet_costs.keeps_cluster(question.scope, cluster)
        },
        billed_share=money.text(charges.billed_share) if charges.billed_share else None,
    )


def compared(
    question: Question,
    by_step: Iterable[Sequence[CostRow]],
    before: Iterable[Sequence[CostRow]],
    *,
    is_recorded: bool,
) -> Iterator[CostRow]:
    """Yield the rows of each step of a question with what each was in the window before, in the step of the same place;
    its cost is not known unless that window `is_recorded` from its start on. Rows that were only there are added, as
    nothing used now; those of a step that the window lacks are left out.
    """
    windows = (Window(*bounds) for bounds in pairwise(question.edges))
    for window, rows, past in zip(windows, by_step, chain(before, repeat(())), strict=False):
        former, names = {row.name: row for row in past}, {row.name for row in rows}
        found = [_with_past(row, former.get(row.name), is_recorded) for row in rows]
        gone = (row for row in former.values() if row.name not in names)
        found += [_with_past(_nothing_used(row, window), row, is_recorded) for row in gone]
        yield from sorted(found, key=lambda row: -Decimal(row.total or 0))


def _with_past(row: CostRow, past: CostRow | None, is_recorded: bool) -> CostRow:
    was = Past() if past is None else Past(past.gpu_hours, past.unpriced_gpu_hours, past.cost, past.total)
    if not is_recorded:
        was = replace(was, cost=None, total=None)
    change = None if row.total is None or was.total is None else Decimal(row.total) - Decimal(was.total)
    return replace(row, previous=was, change=None if change is None else money.text(change))


def _nothing_used(past: CostRow, window: Window) -> CostRow:
    nothing = money.text(0)
    return CostRow(
        name=past.name,
        properties=past.properties,
        window=window,
        gpu_hours=money.text(0, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(0),
        cost=nothing,
        total=nothing,
        currency=past.currency,
    )
