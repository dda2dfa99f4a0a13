"""Rating: exact, additive, independent of order."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quotas.costs.rating import Rate, RatedUsage, Usage, Window, gpu_hours, rate_at, rated_usage

START = datetime(2026, 11, 1, tzinfo=UTC)
SPAN_S = 10 * 86400
NOW = START + timedelta(seconds=SPAN_S)
FLAVORS = ("h100", "l40s")

moments = st.integers(0, SPAN_S * 1_000_000).map(lambda us: START + timedelta(microseconds=us))
shares = st.tuples(st.integers(1, 16), st.integers(1, 8)).map(lambda pair: Fraction(*pair))
amounts = st.decimals(0, 1000, places=10).map(Fraction)


@st.composite
def usages(draw):
    start, end = sorted((draw(moments), draw(moments)))
    return Usage(draw(st.sampled_from(FLAVORS)), draw(shares), start, draw(st.sampled_from([end, None])))


@st.composite
def price_lists(draw):
    return {
        flavor: [Rate(at, draw(amounts)) for at in sorted(draw(st.sets(moments, max_size=4)))] for flavor in FLAVORS
    }


def hour(n: float) -> datetime:
    return START + timedelta(hours=n)


def cost(intervals, prices, now=NOW):
    return rated_usage(intervals, prices, None, now).cost


def test_one_gpu_for_one_hour_costs_the_price():
    prices = {"h100": [Rate(START, Fraction("3.20"))]}
    assert cost([Usage("h100", Fraction(1), hour(1), hour(2))], prices) == Fraction("3.20")


def test_a_price_change_splits_the_charge_at_the_moment():
    prices = {"h100": [Rate(START, Fraction(3)), Rate(hour(2), Fraction(4))]}
    assert cost([Usage("h100", Fraction(2), hour(1), hour(4))], prices) == 2 * (3 + 4 + 4)


def test_what_is_still_held_is_charged_until_now():
    prices = {"h100": [Rate(START, Fraction(3))]}
    assert cost([Usage("h100", Fraction(1), hour(0), None)], prices, hour(1.5)) == Fraction(9, 2)


def test_before_the_first_price_and_without_one_usage_has_no_price():
    usage = [Usage("h100", Fraction(1), hour(0), hour(2)), Usage("l40s", Fraction(1), hour(0), hour(2))]
    rated = rated_usage(usage, {"h100": [Rate(hour(1), Fraction(3))]}, None, NOW)
    assert rated == RatedUsage(gpu_hours=Fraction(4), unpriced_gpu_hours=Fraction(3), priced_cost=Fraction(3))
    assert rated.cost == 3


def test_the_cost_of_what_has_no_price_is_unknown_and_not_zero():
    assert cost([Usage("h100", Fraction(1), hour(0), hour(2))], {}) is None
    assert cost([Usage("h100", Fraction(1), hour(0), hour(2))], {"h100": [Rate(hour(2), Fraction(3))]}) is None


def test_what_was_not_used_costs_nothing():
    assert cost([], {}) == 0
    assert cost([Usage("h100", Fraction(1), hour(1), hour(1)), Usage("h100", Fraction(0), hour(1), hour(2))], {}) == 0


def test_a_price_of_zero_is_a_price():
    rated = rated_usage(
        [Usage("h100", Fraction(1), hour(0), hour(2))], {"h100": [Rate(hour(1), Fraction(0))]}, None, NOW
    )
    assert rated.cost == 0
    assert rated.unpriced_gpu_hours == 1


def test_what_is_not_charged_has_the_price_zero_also_before_the_first():
    usage = Usage("h100", Fraction(2), hour(0), hour(3), is_charged=False)
    rated = rated_usage([usage], {"h100": [Rate(hour(1), Fraction(3))]}, None, NOW)
    assert rated == RatedUsage(gpu_hours=Fraction(6))


def test_the_end_of_a_window_belongs_to_the_next():
    usage = [Usage("h100", Fraction(1), hour(1), hour(2))]
    assert gpu_hours(usage, Window(hour(0), hour(1)), NOW) == 0
    assert gpu_hours(usage, Window(hour(1), hour(2)), NOW) == 1
    assert gpu_hours(usage, Window(hour(2), hour(3)), NOW) == 0


def test_seven_sevenths_are_one_gpu():
    usage = [Usage("h100", Fraction(1, 7), hour(0), hour(1))] * 7
    assert cost(usage, {"h100": [Rate(START, Fraction("3.2"))]}) == Fraction("3.2")


def test_price_in_force():
    prices = [Rate(hour(1), Fraction(1)), Rate(hour(2), Fraction(2))]
    assert [rate_at(prices, hour(n)) for n in (0, 1, 1.5, 2, 9)] == [None, 1, 1, 2, 2]


@given(st.lists(usages(), max_size=6), price_lists(), st.sets(moments, max_size=5))
def test_windows_that_adjoin_add_up_to_the_whole(intervals, prices, cuts):
    edges = [START, *sorted(cuts - {START, NOW}), NOW]
    parts = [Window(start, end) for start, end in pairwise(edges)]
    rated = [rated_usage(intervals, prices, part, NOW) for part in parts]
    assert sum(rated, RatedUsage()) == rated_usage(intervals, prices, None, NOW)
    assert sum(gpu_hours(intervals, part, NOW) for part in parts) == gpu_hours(intervals, None, NOW)


@given(st.lists(usages(), max_size=6), price_lists(), st.randoms())
def test_the_order_of_intervals_does_not_matter(intervals, prices, random):
    shuffled = random.sample(intervals, len(intervals))
    assert rated_usage(shuffled, prices, None, NOW) == rated_usage(intervals, prices, None, NOW)


@given(usages(), price_lists(), moments)
def test_an_interval_cut_in_two_costs_the_same(usage, prices, cut):
    end = usage.end or NOW
    cut = min(max(cut, usage.start), end)
    halves = [
        Usage(usage.flavor, usage.gpus, usage.start, cut),
        Usage(usage.flavor, usage.gpus, cut, usage.end),
    ]
    assert rated_usage(halves, prices, None, NOW) == rated_usage([usage], prices, None, NOW)


@given(usages(), st.lists(moments, min_size=2, max_size=2).map(sorted), price_lists())
def test_cost_to_date_never_falls(usage, moments_, prices):
    earlier, later = (max(moment, usage.start) for moment in moments_)
    before, after = (rated_usage([usage], prices, None, at) for at in (earlier, later))
    assert before.priced_cost <= after.priced_cost
    assert before.unpriced_gpu_hours <= after.unpriced_gpu_hours


@given(usages(), amounts)
def test_at_one_price_cost_is_hours_times_price(usage, price):
    prices = {flavor: [Rate(START, price)] for flavor in FLAVORS}
    assert cost([usage], prices) == gpu_hours([usage], None, NOW) * price


@given(st.lists(usages(), max_size=6), price_lists(), st.lists(moments, min_size=2, max_size=2).map(sorted))
def test_only_what_was_used_before_the_first_price_is_unpriced(intervals, prices, bounds):
    window = Window(*bounds)
    rated = rated_usage(intervals, prices, window, NOW)
    unpriced = Fraction(0)
    for usage in intervals:
        until = prices[usage.flavor][0].valid_from if prices[usage.flavor] else NOW
        unpriced += gpu_hours([usage], Window(window.start, max(window.start, min(window.end, until))), NOW)
    assert rated.unpriced_gpu_hours == unpriced
    assert rated.gpu_hours == gpu_hours(intervals, window, NOW)
