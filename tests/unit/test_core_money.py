from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core import money

amounts = st.fractions(min_value=-(10**9), max_value=10**9)
weights = st.lists(st.fractions(min_value=0, max_value=10**6), min_size=1, max_size=20).filter(any)


def test_an_hour_is_3600_seconds():
    assert money.hours(5400) == Fraction(3, 2)


@pytest.mark.parametrize(
    ("amount", "places", "text"),
    [
        (Fraction(1, 3), 4, "0.3333"),
        (Fraction(25, 1000), 2, "0.02"),
        (Fraction(35, 1000), 2, "0.04"),
        (Fraction(-1, 1000), 2, "0.00"),
        (Decimal("3.2"), 4, "3.2000"),
        (12, 0, "12"),
        (10**15, 2, "1000000000000000.00"),
    ],
)
def test_text_rounds_once_half_to_even(amount, places, text):
    assert money.text(amount, places) == text


@given(amounts, st.integers(0, 10))
def test_text_is_within_half_a_unit(amount, places):
    assert abs(Fraction(money.text(amount, places)) - amount) <= Fraction(1, 2 * 10**places)


@given(amounts, weights)
def test_parts_add_up_to_the_rounded_total(total, shares):
    parts = money.split(total, shares)
    assert sum(parts) == Decimal(money.text(total))


@given(amounts, weights)
def test_each_part_is_within_one_unit_of_its_exact_share(total, shares):
    rounded = Fraction(money.text(total))
    for part, share in zip(money.split(total, shares), shares, strict=True):
        assert abs(Fraction(part) - rounded * share / sum(shares)) < Fraction(1, 10**money.MONEY_PLACES)


@pytest.mark.parametrize("shares", [[], [0, 0], [1, -1]])
def test_split_refuses_weights_that_say_nothing(shares):
    with pytest.raises(ValueError, match="weights"):
        money.split(1, shares)


@given(weights, st.integers(0, 8))
def test_parts_that_come_twice_are_those_of_all_at_once(shares, places):
    whole = money.Split(sum(shares, Fraction(0)), places)
    for share in shares:
        whole.note(share)
    assert [whole.part(share) for share in shares] == money.split(sum(shares, Fraction(0)), shares, places)


def test_equal_parts_that_come_twice_are_rounded_up_from_the_first():
    whole = money.Split(Fraction(1), 1)
    thirds = [Fraction(1, 3)] * 3
    for share in thirds:
        whole.note(share)
    assert [str(whole.part(share)) for share in thirds] == ["0.4", "0.3", "0.3"]
