"""Amounts as pages show them: CPU and memory never more than there is, and what has no price never as zero."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from frontend.presenters.amounts import cost, forecast_range, held_per_hour, left_out, node_share
from frontend.presenters.costs_chart import trends
from frontend.templatetags.portal import numbers
from quotas.catalog.node_shares import NodeShare
from quotas.costs.cost_rows import CostRow
from quotas.costs.rating import Window
from quotas.costs.selectors import NO_CHARGE, Charge


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (NodeShare(23_000, 250 * 1024, 16), "23 CPU and 250 GiB of memory"),
        (NodeShare(2_999, 32_767, 2), "2.9 CPU and 31 GiB of memory"),
        (NodeShare(859, 9_999, 1), "0.85 CPU and 9999 MiB of memory"),
        (NodeShare(), ""),
    ],
)
def test_cpu_and_memory_are_rounded_down(share, words):
    assert node_share(share) == words


@pytest.mark.parametrize(
    ("unpriced", "amount", "words"),
    [
        ("0", "6.4", "6.40 EUR"),
        ("2", "6.4", "6.40 EUR, without 2 GPU-hours that have no price"),
        ("1", "0", "0.00 EUR, without 1 GPU-hour that has no price"),
        ("8", None, "not priced"),
    ],
)
def test_a_cost_says_what_it_leaves_out(unpriced, amount, words):
    charge = Charge(Fraction(8), Fraction(8), Fraction(unpriced), None if amount is None else Fraction(amount))
    assert cost(charge, "EUR") == words


def test_what_was_never_held_costs_nothing():
    assert cost(NO_CHARGE, "EUR") == "0.00 EUR"


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        ("0", ""),
        ("1/1000", "without less than 0.01 GPU-hours that have no price"),
        ("3/2", "without 1.5 GPU-hours that have no price"),
    ],
)
def test_a_few_seconds_without_a_price_are_not_nothing(hours, words):
    assert left_out(Fraction(hours)) == words


@pytest.mark.parametrize(
    ("amount", "unpriced", "words"),
    [
        (Fraction(0), 0, "0.00 EUR per hour"),
        (Fraction("3.2"), 0, "3.20 EUR per hour"),
        (Fraction("3.2"), 1, "3.20 EUR per hour, without 1 allocation that has no price"),
        (Fraction("3.2"), 2, "3.20 EUR per hour, without 2 allocations that have no price"),
        (None, 2, "not priced"),
    ],
)
def test_what_is_held_says_how_much_of_it_has_no_price(amount, unpriced, words):
    assert held_per_hour(amount, "EUR", unpriced) == words


@pytest.mark.parametrize(
    ("low", "total", "high", "words"),
    [
        ("10.0000", "12.0000", "15.0000", "80 % range: 10.00 to 15.00 EUR"),
        ("12.0000", "12.0000", "15.0000", "Probably more: up to 15.00 EUR"),
        ("10.0000", "12.0010", "12.0000", "Probably less: down to 10.00 EUR"),
        ("12.0000", "12.0000", "12.0000", "80 % range: within 0.01 EUR"),
    ],
)
def test_a_forecast_at_one_end_of_its_range_says_to_which_side_it_errs(low, total, high, words):
    assert forecast_range(low, total, high, "EUR") == words


@pytest.mark.parametrize(("first", "last", "words"), [(26, 50, "26 to 50"), (51, 51, "51")])
def test_one_row_of_a_list_is_no_range(first, last, words):
    assert numbers(first, last) == words


@pytest.mark.parametrize(
    ("amounts", "words"),
    [(("5", "5.001"), "5.00 all the time"), (("1", "3", "2"), "from 1.00 to 3.00, last 2.00")],
)
def test_a_trend_of_one_amount_is_no_range(amounts, words):
    starts = [datetime(2026, 11, day, tzinfo=UTC) for day in range(1, len(amounts) + 1)]
    rows = [
        CostRow(
            name="vision",
            window=Window(start, start),
            gpu_hours="1.000000",
            unpriced_gpu_hours="0",
            cost=amount,
            total=amount,
            currency="EUR",
        )
        for start, amount in zip(starts, amounts, strict=True)
    ]
    assert trends(rows, starts)["vision"].words == words
