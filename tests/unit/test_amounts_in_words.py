"""Amounts as pages show them: CPU and memory never more than there is, and what has no price never as zero."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from frontend.presenters.amounts import (
    cost,
    forecast_range,
    held_per_hour,
    left_out,
    marked,
    money,
    node_share,
    number,
    rate,
    relative,
)
from frontend.presenters.costs_chart import trends
from frontend.templatetags.portal import numbers
from quotas.catalog.node_shares import NodeShare
from quotas.costs.cost_rows import CostRow
from quotas.costs.rating import Window
from quotas.costs.selectors import NO_CHARGE, Charge

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("amount", "places", "words"),
    [
        ("4990.6", 2, "4,990.60"),
        ("16384", 0, "16,384"),
        ("0", 2, "0.00"),
        ("1/1000", 2, "under 0.01"),
        ("1/200", 2, "under 0.01"),
        ("1/100", 2, "0.01"),
        ("-1234.5", 2, "-1,234.50"),
        ("1/3", 0, "under 1"),
    ],
)
def test_a_number_has_separators_and_is_never_nothing_when_there_is_something(amount, places, words):
    assert number(Fraction(amount), places) == words


@pytest.mark.parametrize(
    ("amount", "as_money", "as_rate"),
    [
        ("6.4", "6.40 EUR", "6.40 EUR"),
        ("0.5", "0.50 EUR", "0.50 EUR"),
        ("0.0042", "under 0.01 EUR", "0.0042 EUR"),
        (None, "not priced", "not priced"),
    ],
)
def test_only_a_cheap_rate_has_four_places(amount, as_money, as_rate):
    exact = None if amount is None else Fraction(amount)
    assert (money(exact, "EUR"), rate(exact, "EUR")) == (as_money, as_rate)


def test_a_table_with_the_currency_in_its_head_has_figures_alone():
    assert (money(Fraction(1234)), rate(Fraction(1, 2))) == ("1,234.00", "0.50")


def test_an_incomplete_sum_has_a_mark():
    assert [marked("363.16", Fraction(unpriced)) for unpriced in (0, 1)] == ["363.16", "363.16 *"]


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (timedelta(minutes=20), "in 20 min"),
        (timedelta(hours=3, minutes=12), "in 3 h 12 min"),
        (-timedelta(hours=3, minutes=12), "3 h ago"),
        (-timedelta(days=45), "45 d ago"),
        (-timedelta(seconds=5), "under 1 min ago"),
    ],
)
def test_a_time_is_told_by_its_distance(offset, words):
    assert relative(NOW + offset, NOW) == words


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
        ("2", "6.4", "6.40 EUR, 2.00 GPU-hours have no price"),
        ("1", "0", "0.00 EUR, 1.00 GPU-hour has no price"),
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
        ("1/1000", "under 0.01 GPU-hours have no price"),
        ("3/2", "1.50 GPU-hours have no price"),
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
