"""The figures of costs in words: what a total consists of, and changes that add up."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from frontend.presenters import costs, costs_form
from frontend.presenters.costs_tiles import parts_of_total
from quotas.costs.cost_rows import CostRow, Costs, Past
from quotas.costs.rating import Window

WINDOW = Window(datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC))
ROW = CostRow(
    name="vision",
    window=WINDOW,
    gpu_hours="10.000000",
    unpriced_gpu_hours="0",
    cost="10.0000",
    total="10.0000",
    currency="EUR",
)


def found(*rows: CostRow) -> Costs:
    total = sum(Decimal(row.total or 0) for row in rows)
    return Costs(WINDOW, "EUR", list(rows), "10.000000", "0", f"{total}", {})


def test_a_total_with_bills_and_fixed_costs_says_what_it_consists_of_and_adds_up() -> None:
    with_all = replace(ROW, adjustment="-1.0050", shared_cost="79.1350", total="88.1300")
    assert parts_of_total(found(with_all)) == "9.99 GPU + -1.00 bills + 79.14 fixed"


def test_a_total_of_gpus_alone_says_nothing_more() -> None:
    assert parts_of_total(found(ROW)) == ""


@pytest.mark.parametrize(("total", "before"), [("342.7749", "0.0000"), ("342.7751", "0.0000"), ("1.0050", "0.9949")])
def test_a_change_is_the_difference_of_the_amounts_that_are_shown(total: str, before: str) -> None:
    change = f"{Decimal(total) - Decimal(before)}"
    row = replace(ROW, total=total, previous=Past(cost=before, total=before), change=change)
    (line,) = costs.table(found(row), {"vision": "vision"}, {}, {}).lines
    assert line.cost is not None
    assert line.change == line.cost - round(Decimal(before), 2)


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("2026-11-02T00:00", "2026-11-09T00:00", "2026-11-02", "2026-11-08"),
        ("2026-11-02T23:50", "2026-11-03T01:20", "2026-11-02", "2026-11-03"),
        ("2026-11-02T10:00", "2026-11-02T10:15", "2026-11-02", "2026-11-02"),
    ],
)
def test_the_days_of_a_window_are_those_of_which_it_has_a_part(start: str, end: str, first: str, last: str) -> None:
    days = costs_form.days(datetime.fromisoformat(start), datetime.fromisoformat(end))
    assert days == {"first": first, "last": last}
