"""List prices of slices: which price is in force, as by a second calculation, and what the platform keeps of it."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, Offering
from quotas.costs import ledger, rating, rollups, selectors, services
from quotas.costs.cost_rows import COLUMNS
from quotas.costs.models import Price
from quotas.costs.questions import IdleView
from quotas.costs.rating import ListPrice, Rate, Window
from quotas.metering.models import RolledUpHour, UsageInterval
from tests.support import cost_answers, costs_by_moment, shares_by_moment
from tests.support.capacity import GPUS, hold_gpu, offer, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
DAY = Window(hour(0), hour(24))
PROFILE, SHARE = "h100/mig-3g.40gb", Fraction(3, 7)


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    """A fleet whose h100 have a price of 3.20 for a GPU, and slices of 3/7 of one."""
    fleet()
    offer("3g.40gb", SHARE)


def set_slice_price(amount: str | None, at: float, key: str = PROFILE) -> Price:
    offering = Offering.objects.select_related("flavor").get(key=key)
    with clock.frozen(hour(at)):
        return services.set_slice_price(SYSTEM, offering.key, amount, "EUR", hour(at), "test")


def hold(start: float, end: float | None, **values: Any) -> UsageInterval:
    return used(hour(start), hour(end) if end else None, offering=PROFILE, flavor="h100", gpu_share=SHARE, **values)


def cost(now: float = 24) -> str | None:
    return cost_answers.costs(DAY, (), now=hour(now)).total


def test_holders_pay_the_list_price_where_one_is_set():
    set_slice_price("1", 0)
    hold(0, 3, quantity=2)
    used(hour(0), hour(1), offering="h100/whole", flavor="h100")
    assert cost() == "9.2000"


def test_a_list_price_begins_while_a_slice_is_held_and_ends_again():
    set_slice_price("2", 1)
    set_slice_price(None, 3)
    row = hold(0, 4)
    expected = 2 * SHARE * Fraction("3.2") + 2 * 2
    assert cost() == f"{float(expected):.4f}"
    [charge] = selectors.charges_to_date([row.holder_id], hour(5)).values()
    assert charge.cost is not None
    assert abs(charge.cost - expected) < Fraction(1, 10**8)


def test_a_slice_without_a_flavor_price_has_its_list_price():
    Price.objects.all()._raw_delete("default")
    set_slice_price("1", 0)
    hold(0, 2)
    assert cost() == "2.0000"


def test_what_is_shown_is_the_list_price():
    set_slice_price("1", 0)
    offerings = list(Offering.objects.filter(flavor__name="h100").select_related("flavor"))
    found = selectors.prices_per_hour(offerings, hour(1))
    assert found == {"h100/whole": Fraction("3.2"), "h100/claim": Fraction("3.2"), PROFILE: Fraction(1)}
    assert selectors.prices_per_hour(offerings, hour(-1))[PROFILE] == SHARE * Fraction("3.2")


def test_the_difference_to_the_price_of_the_flavor_is_variance():
    """Two GPUs cost their price; a slice of 3/7 pays 1 instead."""
    record(GPUS, 0)
    set_slice_price("1", 0)
    hold_gpu("gpu-0-mig-3g40gb-9-0", 0, 1, offering=PROFILE, gpu_share=SHARE)
    [row] = cost_answers.costs(Window(hour(0), hour(1)), ("flavor",), now=hour(1), idle=IdleView()).rows
    amounts = [row.cost, *(getattr(row, name) for name in COLUMNS.values())]
    assert (row.cost, sum(Decimal(each) for each in amounts)) == ("1.0000", Decimal("6.4"))
    assert row.price_variance == f"{float(SHARE * Fraction('3.2') - 1):.4f}"


def test_slices_that_take_more_than_their_gpu_pay_for_the_part_they_are_charged():
    record(GPUS, 0)
    set_slice_price("1", 1.5)
    for number, (start, end) in enumerate([(0, 4), (1, 3), (2, 5)]):
        hold_gpu(f"gpu-0-mig-3g40gb-9-{number}", start, end, offering=PROFILE, gpu_share=SHARE)
    pieces, prices = shares_by_moment.pieces(hour(6)), costs_by_moment.prices()
    expected = costs_by_moment.amount(pieces, prices, hour(0), hour(6))
    assert expected.hours == 9 * SHARE - 3 * SHARE + 1
    for _ in range(2):
        [found] = ledger.sums([hour(0), hour(6)], (), {}, hour(6))
        assert costs_by_moment.of_sum(found) == expected
        rollups.roll_up(LOCAL, hour(0), hour(3))


def test_a_list_price_never_changes_past_charges():
    with clock.frozen(hour(5)):
        offering = Offering.objects.select_related("flavor").get(key=PROFILE)
        with pytest.raises(Invalid, match="from now on"):
            services.set_slice_price(SYSTEM, offering.key, "1", "EUR", hour(4))
    set_slice_price("1", 5)
    with pytest.raises(Refused, match="another price"):
        set_slice_price("2", 5)
    assert set_slice_price("1.0", 5).pk == Price.objects.get(offering__key=PROFILE).pk


def test_list_prices_that_cannot_be():
    with pytest.raises(Invalid, match="has no list price"):
        set_slice_price("1", 0, "h100/claim")
    with pytest.raises(Invalid, match="could end"):
        set_slice_price(None, 0)
    with pytest.raises(Invalid, match="per_slice_hour"):
        set_slice_price("1000000", 0)


def test_the_database_refuses_a_row_of_both_kinds_or_a_negative_one():
    flavor, offering = Flavor.objects.get(name="h100"), Offering.objects.get(key=PROFILE)
    for values in (
        {"per_gpu_hour": "1", "offering": offering},
        {"per_slice_hour": "1"},
        {},
        {"per_gpu_hour": "-1"},
        {"per_slice_hour": "-1", "offering": offering},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Price.objects.create(flavor=flavor, valid_from=hour(9), currency="EUR", **values)


def test_the_price_of_a_gpu_hour_is_rounded_half_up():
    assert rating.slice_rates([], [ListPrice(hour(0), Fraction(1))], SHARE) == [Rate(hour(0), Fraction("2.3333333333"))]
    tie = [ListPrice(hour(0), Fraction("0.0000000001"))]
    assert rating.slice_rates([], tie, Fraction(2, 5)) == [Rate(hour(0), Fraction("0.0000000003"))]


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_sums_roll_ups_and_charges_are_those_of_a_second_calculation_to_the_last_digit(seed):
    random = Random(seed)
    for model in (UsageInterval, Price, RolledUpHour):
        model.objects.all()._raw_delete("default")
    flavor = Flavor.objects.get(name="h100")
    for at in sorted(random.sample(range(-5, 40), random.randrange(3))):
        with clock.frozen(hour(at / 2)):
            services.set_price(SYSTEM, flavor.name, f"{random.random():.10f}", "EUR", hour(at / 2))
    for number, at in enumerate(sorted(random.sample(range(-5, 40), random.randrange(4)))):
        amount = None if number and random.random() < 0.3 else f"{random.random():.10f}"
        set_slice_price(amount, at / 2 + random.random() / 2)
    for _ in range(random.randrange(1, 8)):
        start, end = sorted(random.uniform(0, 20) for _ in range(2))
        key = random.choice([PROFILE, "h100/whole"])
        share = Fraction(random.randrange(1, 8), random.choice([7, 8, 15]))
        used(hour(start), hour(end), random.randrange(1, 4), uuid4(), offering=key, flavor="h100", gpu_share=share)
    edges = sorted({hour(random.uniform(0, 20)) for _ in range(4)})
    pieces, prices = list(shares_by_moment.pieces(hour(21))), costs_by_moment.prices()
    expected = {
        Window(start, end): costs_by_moment.amount(pieces, prices, start, end) for start, end in pairwise(edges)
    }
    for _ in range(2):
        found = {one.window: costs_by_moment.of_sum(one) for one in ledger.sums(edges, (), {}, hour(21))}
        assert found == {window: amount for window, amount in expected.items() if amount.hours}
        rollups.roll_up(LOCAL, hour(0), hour(0) + timedelta(hours=random.randrange(1, 21)))
    for piece in pieces:
        [charge] = selectors.charges_to_date([piece[0].holder_id], hour(21)).values()
        alone = costs_by_moment.amount([piece], prices, hour(-99), hour(21))
        assert (charge.unpriced, charge.cost) == (alone.unpriced, None if alone.is_unpriced else alone.cost)
