"""Prices, cost to date, and sums over windows: exact, and the same as by a second calculation."""

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demo import prices as demo_prices
from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, Offering
from quotas.costs import ledger, selectors, services
from quotas.costs.answers import answer
from quotas.costs.cost_rows import CostRow
from quotas.costs.models import Price
from quotas.costs.questions import Question, asked_by
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering import overtime
from quotas.metering.models import Correction, UsageInterval
from tests.support import cost_answers, costs_by_moment, shares_by_moment
from tests.support.people import person
from tests.support.quotas import cluster, hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
WEEK = Window(hour(0), hour(168))


@pytest.fixture
def flavor(db: None) -> Flavor:
    cluster()
    return Flavor.objects.get(name="l40s")


def price(flavor: Flavor, amount: str, at: float) -> Price:
    with clock.frozen(hour(at)):
        return services.set_price(SYSTEM, flavor.name, amount, "EUR", hour(at), "test")


def test_a_price_is_a_row_of_its_own(flavor):
    first = price(flavor, "1.10", 0)
    assert price(flavor, "1.1", 0).pk == first.pk
    price(flavor, "1.20", 5)
    assert list(Price.objects.values_list("valid_from", "per_gpu_hour", "currency", "source")) == [
        (hour(5), Decimal("1.2"), "EUR", "test"),
        (hour(0), Decimal("1.1"), "EUR", "test"),
    ]


def test_another_price_at_the_same_moment_is_refused(flavor):
    price(flavor, "1.10", 0)
    with pytest.raises(Refused, match="another price"):
        price(flavor, "1.20", 0)


def test_a_price_cannot_change_what_was_charged(flavor):
    price(flavor, "1.10", 0)
    with clock.frozen(hour(10)), pytest.raises(Invalid) as caught:
        services.set_price(SYSTEM, flavor.name, "9", "EUR", hour(5))
    assert "valid_from" in caught.value.errors


def test_the_first_price_may_reach_back(flavor):
    with clock.frozen(hour(10)):
        assert services.set_price(SYSTEM, flavor.name, "9", "EUR", hour(0)).valid_from == hour(0)


@pytest.mark.parametrize("amount", ["", "x", "-1", "NaN", "Infinity", "1e12", "0.00000000001"])
def test_amounts_that_are_no_price(flavor, amount):
    with pytest.raises(Invalid) as caught:
        services.set_price(SYSTEM, flavor.name, amount, "EUR")
    assert "per_gpu_hour" in caught.value.errors


def test_one_currency(flavor):
    price(flavor, "1.10", 0)
    for currency in ("USD", "eur", "€"):
        with pytest.raises(Invalid) as caught:
            services.set_price(SYSTEM, flavor.name, "1", currency)
        assert "currency" in caught.value.errors
    assert selectors.currency() == "EUR"


def test_seeded_prices_are_given_once_to_the_flavors_found(flavor):
    assert demo_prices.price() == 2
    assert demo_prices.price() == 0
    assert dict(Price.objects.values_list("flavor__name", "per_gpu_hour")) == {
        "a100": Decimal("1.8"),
        "l40s": Decimal("1.1"),
    }


def test_price_of_a_slice_is_its_part_of_the_gpu(flavor, django_assert_num_queries):
    demo_prices.price()
    offerings = list(Offering.objects.select_related("flavor"))
    with django_assert_num_queries(1):
        prices = selectors.prices_per_hour(offerings, hour(0))
    assert prices == {
        "a100/mig-1g.10gb": Fraction("1.8") / 7,
        "a100/mig-3g.40gb": Fraction("0.9"),
        "l40s/whole": Fraction("1.1"),
    }
    assert selectors.prices_per_hour(offerings, hour(-100_000)) == {}


def test_charges_to_date_take_the_same_queries_however_many(flavor):
    price(flavor, "1", 0)
    price(flavor, "2", 2)
    held, ended, never = uuid4(), uuid4(), uuid4()
    used(hour(1), None, 2, held)
    used(hour(0), hour(1), 1, ended)
    used(hour(3), hour(4), 1, ended)
    holders = [held, ended, never]

    def charges():
        return selectors.charges_to_date(holders, hour(3))

    def grow():
        for _ in range(49):
            holders.append(used(hour(0), hour(1)).holder_id)

    first = charges()
    assert_constant(charges, grow, at_most=5)
    assert {holder: charge.cost for holder, charge in first.items()} == {
        held: Fraction(6),
        ended: Fraction(1),
        never: Fraction(0),
    }


def test_sums_by_team_project_member_and_offering(flavor):
    price(flavor, "1", 0)
    used(hour(0), hour(1), 2)
    used(hour(0), None, 1, member="eve")
    used(hour(0), hour(1), 3, team="language", project="language-dev", member="li")
    by = {
        keys: [(row.name, row.gpu_hours, row.cost) for row in cost_answers.costs(WEEK, keys, now=hour(2)).rows]
        for keys in [("team",), ("project", "member"), ("offering",), ("node",), ()]
    }
    assert by == {
        ("team",): [("vision", "4.000000", "4.0000"), ("language", "3.000000", "3.0000")],
        ("project", "member"): [
            ("language-dev/li", "3.000000", "3.0000"),
            ("vision-train/ada", "2.000000", "2.0000"),
            ("vision-train/eve", "2.000000", "2.0000"),
        ],
        ("offering",): [("l40s/whole", "7.000000", "7.0000")],
        ("node",): [("__unallocated__", "7.000000", "7.0000")],
        (): [("all", "7.000000", "7.0000")],
    }


def test_a_row_has_the_shape_of_opencost(flavor):
    price(flavor, "1.10", 0)
    used(hour(0), hour(1))
    found = cost_answers.costs(WEEK, now=hour(2))
    assert (found.currency, found.total, found.gpu_hours) == ("EUR", "1.1000", "1.000000")
    assert found.rows == [
        CostRow(
            name="vision-train",
            window=WEEK,
            gpu_hours="1.000000",
            unpriced_gpu_hours="0",
            cost="1.1000",
            total="1.1000",
            currency="EUR",
            properties={"project": "vision-train"},
            idle_cost="0",
            stranded_cost="0",
            unavailable_cost="0",
            unmanaged_cost="0",
            variance="0",
            shared_cost="0",
        )
    ]


def test_rows_per_day(flavor):
    price(flavor, "1", 0)
    used(hour(12), hour(60))
    rows = cost_answers.costs(WEEK, ["team"], step=Step.DAY, now=hour(100)).rows
    assert [(row.window.start, row.window.end, row.cost) for row in rows] == [
        (hour(0), hour(24), "12.0000"),
        (hour(24), hour(48), "24.0000"),
        (hour(48), hour(72), "12.0000"),
    ]


def test_a_window_ahead_is_empty(flavor):
    price(flavor, "1", 0)
    used(hour(0), None)
    assert cost_answers.costs(Window(hour(5), hour(6)), now=hour(4)).rows == []
    assert cost_answers.costs(Window(hour(5), hour(6)), now=hour(4)).total == "0.0000"


def test_only_the_teams_one_may_see_and_what_one_asks_for(flavor):
    price(flavor, "1", 0)
    used(hour(0), hour(1))
    used(hour(0), hour(1), team="language", project="language-dev")

    def names(**options):
        return [row.name for row in cost_answers.costs(WEEK, ["team"], now=hour(2), **options).rows]

    assert names() == ["language", "vision"]
    assert names(teams=["vision"]) == ["vision"]
    assert names(teams=[]) == []
    assert names(where={"project": ["language-dev", "other"]}) == ["language"]
    assert names(where={"team": ["language"]}, teams=["vision"]) == []
    allocation = str(UsageInterval.objects.get(team="vision").holder_id)
    assert names(where={"allocation": [allocation]}) == ["vision"]


def test_before_it_is_said_who_asks_nothing_may_be_seen(flavor, team):
    used(hour(0), hour(1))
    question = Question(WEEK, hour(2), keys=["team"])
    found = [answer(one).rows for one in (question, asked_by(person(), question), asked_by(person(team), question))]
    assert [[row.name for row in rows] for rows in found] == [[], [], ["vision"]]


@pytest.mark.parametrize("keys", [["pod"], ["team", "label:"], ["team; DROP TABLE"], ["label:x' OR ''='"]])
def test_an_unknown_key_is_answered_with_those_that_work(keys):
    with pytest.raises(Invalid, match="department, team, project"):
        cost_answers.costs(WEEK, keys)
    with pytest.raises(Invalid, match="department, team, project"):
        cost_answers.costs(WEEK, where={keys[-1]: ["x"]})


def test_rounded_rows_add_up_to_the_sums(flavor):
    price(flavor, "0.0001", 0)
    for number in range(3):
        used(hour(0), hour(1), 1, member=f"m{number}", gpu_share=Fraction(1, 3))
    found = cost_answers.costs(WEEK, ["member"], now=hour(2))
    assert [row.cost for row in found.rows] == ["0.0001", "0.0000", "0.0000"]
    assert (sum(Decimal(row.cost or "nan") for row in found.rows), found.total) == (Decimal("0.0001"), "0.0001")
    assert sum(Decimal(row.gpu_hours) for row in found.rows) == Decimal(found.gpu_hours)


def test_usage_without_a_price_has_no_cost(flavor):
    used(hour(0), hour(2), 3)
    found = cost_answers.costs(WEEK, ["team"], now=hour(5))
    assert [(row.cost, row.total, row.unpriced_gpu_hours) for row in found.rows] == [(None, None, "6.000000")]
    assert (found.gpu_hours, found.unpriced_gpu_hours, found.total) == ("6.000000", "6.000000", None)


def test_a_sum_over_what_is_partly_priced_says_what_it_leaves_out(flavor):
    price(flavor, "1", 1)
    used(hour(0), hour(4), member="ada")
    used(hour(0), hour(1), member="eve")
    used(hour(1), hour(3), member="li")
    found = cost_answers.costs(WEEK, ["member"], now=hour(5))
    assert [(row.name, row.gpu_hours, row.cost, row.unpriced_gpu_hours) for row in found.rows] == [
        ("ada", "4.000000", "3.0000", "1.000000"),
        ("li", "2.000000", "2.0000", "0"),
        ("eve", "1.000000", None, "1.000000"),
    ]
    assert (found.total, found.unpriced_gpu_hours) == ("5.0000", "2.000000")


def test_a_price_of_zero_costs_zero(flavor):
    price(flavor, "0", 0)
    used(hour(0), hour(1))
    found = cost_answers.costs(WEEK, now=hour(2))
    assert [(row.cost, row.unpriced_gpu_hours) for row in found.rows] == [("0.0000", "0")]
    assert (found.total, found.unpriced_gpu_hours) == ("0.0000", "0")


def test_rounded_unpriced_hours_add_up_to_their_sum(flavor):
    for number in range(3):
        used(hour(0), hour(0) + timedelta(milliseconds=12), member=f"m{number}", gpu_share=Fraction(1, 7))
    price(flavor, "1", 1)
    used(hour(1), hour(2), member="priced")
    found = cost_answers.costs(WEEK, ["member"], now=hour(3))
    assert [(row.name, row.unpriced_gpu_hours, row.cost) for row in found.rows] == [
        ("priced", "0", "1.0000"),
        ("m0", "0.000001", None),
        ("m1", "0.000000", None),
        ("m2", "0.000000", None),
    ]
    assert sum(Decimal(row.unpriced_gpu_hours) for row in found.rows) == Decimal(found.unpriced_gpu_hours)


def test_charges_to_date_of_what_has_no_price(flavor):
    price(flavor, "3", 2)
    before, across = uuid4(), uuid4()
    used(hour(0), hour(2), 1, before)
    used(hour(1), None, 2, across)
    charges = selectors.charges_to_date([before, across], hour(4))
    assert charges == {
        before: selectors.Charge(reserved=Fraction(2), used=Fraction(2), unpriced=Fraction(2), cost=None),
        across: selectors.Charge(reserved=Fraction(6), used=Fraction(6), unpriced=Fraction(2), cost=Fraction(12)),
    }


def test_costs_take_as_many_queries_for_50_rows_as_for_one(flavor):
    price(flavor, "1", 0)
    used(hour(0), hour(1), member="m0")

    def rows():
        return cost_answers.costs(WEEK, ["member"], step=Step.DAY, now=hour(2)).rows

    def grow():
        for number in range(1, 50):
            used(hour(0), hour(1), member=f"m{number}")

    assert_constant(rows, grow, at_most=5)
    assert len(rows()) == 50


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_sums_and_charges_are_those_of_a_second_calculation_to_the_last_digit(flavor, seed):
    random = Random(seed)
    for model in (Correction, UsageInterval, Price):
        model.objects.all().delete()
    for name in ("l40s", "a100"):
        for at in sorted(random.sample(range(-10, 200), random.randrange(4))):
            price(Flavor.objects.get(name=name), random.choice(["0", f"{random.random():.10f}"]), at)

    def moment():
        return hour(0) + timedelta(microseconds=random.randrange(200 * 3_600_000_000))

    for _ in range(random.randrange(12)):
        start, end = sorted((moment(), moment()))
        share = Fraction(1, random.randrange(1, 8))
        name = random.choice(["l40s", "a100", "unpriced"])
        row = used(start, random.choice([end, None]), random.randrange(1, 5), flavor=name, gpu_share=share)
        if random.random() < 0.3:
            overtime.record(row.holder_id, moment(), {"kind": "test"}, charged=False)
    now, edges = moment(), sorted({moment() for _ in range(4)})
    pieces, prices = list(shares_by_moment.pieces(now)), costs_by_moment.prices()
    expected = {
        Window(start, end): costs_by_moment.amount(pieces, prices, start, min(end, now))
        for start, end in pairwise(edges)
    }
    found = {one.window: costs_by_moment.of_sum(one) for one in ledger.sums(edges, [], {}, now)}
    assert found == {window: amount for window, amount in expected.items() if amount.hours}
    by_holder = defaultdict(list)
    for piece in pieces:
        by_holder[piece[0].holder_id].append(piece)
    charges = selectors.charges_to_date(by_holder, now)
    assert {key: (one.reserved, one.unpriced, one.cost) for key, one in charges.items()} == {
        key: (one.hours, one.unpriced, None if one.is_unpriced else one.cost)
        for key, of_holder in by_holder.items()
        for one in [costs_by_moment.amount(of_holder, prices, hour(0), now)]
    }
