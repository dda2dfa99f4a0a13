"""Compares the costs of a window with those of the window before it, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from portal.core import money
from quotas.costs.cost_rows import CostRow, Costs, Past
from quotas.costs.rating import Window
from quotas.metering import ledger_starts


@dataclass(frozen=True)
class Edges:
    """The bounds of the steps of a window and of the window before it. Steps are compared by their place."""

    now: Sequence[datetime]
    before: Sequence[datetime]


def compared(costs: Costs, before: Costs, edges: Edges) -> Costs:
    """Return the costs with what each row was in the window before; there is no change against a window that was not
    recorded from its start on.
    """
    unrecorded_until = ledger_starts.unrecorded_until(before.window.start)
    rows = compared_rows(costs.rows, before.rows, edges, is_recorded=unrecorded_until is None)
    if unrecorded_until is not None:
        before = replace(before, total=None, unrecorded_until=unrecorded_until)
    return replace(costs, rows=rows, previous=before)


def compared_rows(
    now: Sequence[CostRow], before: Sequence[CostRow], edges: Edges, *, is_recorded: bool
) -> list[CostRow]:
    """Return the rows with what each was in the window before, whose cost is not known unless it `is_recorded` from its
    start on. Rows that were only there are added, as nothing used now; those of a step that the window lacks are left
    out.
    """
    place_of, place_before = ({start: place for place, start in enumerate(each)} for each in (edges.now, edges.before))
    former = {(place_before[row.window.start], row.name): row for row in before}
    seen = {(place_of[row.window.start], row.name) for row in now}
    pasts = (former.get((place_of[row.window.start], row.name)) for row in now)
    rows = [_with_past(row, past, is_recorded) for row, past in zip(now, pasts, strict=True)]
    for (place, name), past in former.items():
        if place < len(edges.now) - 1 and (place, name) not in seen:
            window = Window(edges.now[place], edges.now[place + 1])
            rows.append(_with_past(_nothing_used(past, window), past, is_recorded))
    rows.sort(key=lambda row: (row.window.start, -Decimal(row.total or 0)))
    return rows


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
