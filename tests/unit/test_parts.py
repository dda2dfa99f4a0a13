"""The parts of capacity: exact, additive, independent of order, and the same as second by second."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quotas.metering.parts import (
    Account,
    CapacitySpan,
    Category,
    Part,
    UsageSpan,
    gpu_hours,
    split,
)
from tests.support.hours_by_flavor import capacity_hours
from tests.support.parts_by_second import by_second

START = datetime(2026, 11, 1, tzinfo=UTC)
ONE = Fraction(1)
HALF = Fraction(1, 2)
QUARTER = Fraction(1, 4)
WEIGHTS = [
    *(ONE, *(Fraction(n, 7) for n in (1, 2, 3, 4)), *(Fraction(n, 8) for n in (1, 2, 4))),
    *(QUARTER, Fraction(1, 10), Fraction(3, 10), Fraction(0)),
]
"""Of whole GPUs, MIG slices, replicas, consumed shares, and admin access."""
HELD, UNMANAGED, UNAVAILABLE, STRANDED, IDLE, VARIANCE = Category


def hour(n: float) -> datetime:
    return START + timedelta(hours=n)


def gpu(*uses: UsageSpan, capacity: tuple[CapacitySpan, ...] = (CapacitySpan(START, None, ONE),), fits=None) -> Account:
    return Account([replace(one, fits=fits or one.fits) for one in capacity], uses, is_gpu=True)


def count(*uses: UsageSpan, capacity: tuple[CapacitySpan, ...]) -> Account:
    return Account(capacity, uses)


def use(key: str, start: float, end: float | None, weight: Fraction, **values) -> UsageSpan:
    return UsageSpan(key, hour(start), None if end is None else hour(end), weight, **values)


def hours(account: Account, start: float = 0, end: float = 1) -> dict[Category, Fraction]:
    """Return the GPU-hours of each category that has any."""
    found = gpu_hours(split(account, hour(start), hour(end)))
    return {category: amount for category, amount in found.items() if amount}


def test_a_gpu_held_for_half_an_hour_is_idle_for_the_other():
    assert hours(gpu(use("a", 0, 0.5, ONE))) == {HELD: HALF, IDLE: HALF}
    assert hours(gpu(use("a", 0.25, 0.75, ONE))) == {HELD: HALF, IDLE: HALF}


def test_four_shares_of_25_percent_for_one_hour_are_one_gpu_hour():
    """The acceptance criterion of HAMi's issue 3073."""
    assert hours(gpu(*(use(key, 0, 1, QUARTER) for key in "abcd"))) == {HELD: ONE}


def test_seven_sevenths_are_one_gpu():
    assert hours(gpu(*(use(key, 0, 1, Fraction(1, 7)) for key in "abcdefg"))) == {HELD: ONE}


def test_slices_that_add_up_to_more_than_their_gpu_are_charged_the_gpu():
    """3g has 4 of 8 memory slices, 4g has 4 of 7 compute slices."""
    account = gpu(use("3g", 0, 2, HALF), use("4g", 1, None, Fraction(4, 7)))
    assert split(account, hour(0), hour(3)) == [
        Part(hour(0), hour(2), HELD, HALF, "3g"),
        Part(hour(0), hour(1), IDLE, HALF),
        Part(hour(1), hour(2), HELD, HALF, "4g"),
        Part(hour(2), hour(3), HELD, Fraction(4, 7), "4g"),
        Part(hour(2), hour(3), IDLE, Fraction(3, 7)),
    ]


def test_what_is_unmanaged_is_charged_what_is_held_leaves_whoever_began_first():
    account = gpu(use("3g", 1, 2, HALF), use("4g", 0, 2, Fraction(4, 7), category=UNMANAGED))
    assert hours(account, 0, 1) == {UNMANAGED: Fraction(4, 7), IDLE: Fraction(3, 7)}
    assert hours(account, 1, 2) == {HELD: HALF, UNMANAGED: HALF}


def test_use_beyond_capacity_that_is_gone_stays_charged_and_variance_is_negative():
    two = count(
        use("a", 0, None, Fraction(2)), capacity=(CapacitySpan(hour(0), hour(1), ONE), CapacitySpan(hour(0), None, ONE))
    )
    assert hours(two, 0, 1) == {HELD: Fraction(2)}
    assert hours(two, 1, 2) == {HELD: Fraction(2), VARIANCE: -ONE}
    gone = gpu(use("a", 0, 2, HALF), capacity=(CapacitySpan(hour(0), hour(1), ONE),))
    assert hours(gone, 1, 3) == {HELD: HALF, VARIANCE: -HALF}


def test_a_count_of_units_is_charged_by_weight_however_many_begin():
    account = count(*(use(key, 0, 1, ONE) for key in "abc"), capacity=(CapacitySpan(START, None, Fraction(4)),))
    assert hours(account) == {HELD: Fraction(3), IDLE: ONE}


def test_only_what_is_not_in_use_is_unavailable():
    broken = (CapacitySpan(hour(0), None, Fraction(4), unavailable=Fraction(3)),)
    assert hours(count(capacity=broken)) == {UNAVAILABLE: Fraction(3), IDLE: ONE}
    assert hours(count(use("a", 0, None, ONE), capacity=broken)) == {HELD: ONE, UNAVAILABLE: Fraction(3)}
    assert hours(count(use("a", 0, None, Fraction(2)), capacity=broken)) == {HELD: 2, UNAVAILABLE: 2}


def test_what_nobody_allocated_is_unmanaged():
    account = gpu(use("a", 0, 1, HALF), use("b", 0, 1, QUARTER, category=UNMANAGED))
    assert hours(account) == {HELD: HALF, UNMANAGED: QUARTER, IDLE: QUARTER}


def test_what_no_offered_slice_fits_is_stranded():
    account = gpu(use("a", 0, 1, HALF), fits=lambda devices: Fraction(1, 8))
    assert hours(account) == {HELD: HALF, IDLE: Fraction(1, 8), STRANDED: Fraction(3, 8)}


def test_what_fits_is_what_was_offered_at_the_time():
    before = CapacitySpan(hour(0), hour(0.5), ONE, fits=lambda devices: ONE)
    after = CapacitySpan(hour(0.5), None, ONE, fits=lambda devices: QUARTER)
    assert hours(Account([after, before], [], is_gpu=True)) == {
        IDLE: HALF + HALF * QUARTER,
        STRANDED: HALF * (1 - QUARTER),
    }


def test_slices_that_fit_are_idle_at_most_as_far_as_the_gpu_is_free():
    """4g and 3g are 15/14 of a GPU."""
    assert hours(gpu(fits=lambda devices: Fraction(15, 14))) == {IDLE: ONE}


def test_what_fits_depends_on_the_devices_in_use_in_the_order_of_their_names():
    uses = [use("a", 0, 1, QUARTER, device="gpu-0-mig-2"), use("b", 0, 0.5, QUARTER, device="gpu-0-mig-1")]
    seen: dict[tuple[str, ...], Fraction] = {}
    split(gpu(*uses, fits=lambda devices: seen.setdefault(devices, ONE)), hour(0), hour(2))
    assert list(seen) == [("gpu-0-mig-1", "gpu-0-mig-2"), ("gpu-0-mig-2",), ()]


def test_of_a_gpu_that_is_not_available_nobody_asks_what_fits():
    broken = (CapacitySpan(hour(0), None, ONE, unavailable=ONE),)
    assert hours(gpu(capacity=broken, fits=lambda devices: pytest.fail())) == {UNAVAILABLE: ONE}


def test_an_open_use_and_open_capacity_reach_to_the_end_of_the_window():
    assert hours(gpu(use("a", 1, None, ONE)), 0, 5) == {HELD: 4, IDLE: 1}


def test_capacity_that_begins_in_the_window_counts_from_then_on():
    account = gpu(capacity=(CapacitySpan(hour(3), None, ONE),))
    assert hours(account, 0, 5) == {IDLE: 2}
    assert capacity_hours(account, hour(0), hour(5)) == 2


def test_the_end_of_a_window_belongs_to_the_next():
    account = gpu(use("a", 1, 2, ONE))
    assert [hours(account, n, n + 1) for n in range(3)] == [{IDLE: ONE}, {HELD: ONE}, {IDLE: ONE}]


def test_a_window_that_ends_before_it_begins_has_no_parts():
    assert split(gpu(use("a", 0, None, HALF)), hour(2), hour(1)) == []
    assert capacity_hours(gpu(), hour(2), hour(1)) == 0


def test_a_microsecond_counts():
    until = START + timedelta(microseconds=1)
    parts = split(gpu(UsageSpan("a", START, until, ONE)), START, until)
    assert gpu_hours(parts)[HELD] == capacity_hours(gpu(), START, until) == Fraction(1, 3_600_000_000)


def test_parts_are_cut_only_where_their_size_changes():
    account = gpu(
        use("a", 0, 3, HALF),
        use("b", 1, 2, QUARTER, category=UNMANAGED),
        use("c", 1.5, 1.5, HALF),
        capacity=(CapacitySpan(hour(0), hour(0.5), ONE), CapacitySpan(hour(0.5), None, ONE)),
    )
    assert split(account, hour(0), hour(3)) == [
        Part(hour(0), hour(3), HELD, HALF, "a"),
        Part(hour(0), hour(1), IDLE, HALF),
        Part(hour(1), hour(2), IDLE, QUARTER),
        Part(hour(1), hour(2), UNMANAGED, QUARTER, "b"),
        Part(hour(2), hour(3), IDLE, HALF),
    ]


def second(n: int) -> datetime:
    return START + timedelta(seconds=n)


moments = st.integers(0, 20).map(second)
windows = st.just([second(-3), second(23)]) | st.lists(st.integers(-3, 23).map(second), min_size=2, max_size=2).map(
    sorted
)
fits = st.functions(
    like=lambda devices: Fraction(0),
    returns=st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(2, 7), HALF, ONE]),
    pure=True,
)


@st.composite
def intervals(draw):
    start, end = sorted((draw(moments), draw(moments)))
    return start, draw(st.sampled_from([end, end, None]))


@st.composite
def uses_of(draw, weights):
    found = []
    for key in draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)):
        category, device = draw(st.sampled_from([HELD, UNMANAGED])), draw(st.sampled_from(["", "x", "y", "z"]))
        start, end = draw(intervals())
        found.append(UsageSpan(key, start, end, draw(st.sampled_from(weights)), category, device))
    return found


@st.composite
def gpus(draw):
    """A GPU that is there all the time, or comes and goes and is healthy or not."""
    capacity = [CapacitySpan(second(-3), None, ONE)]
    if draw(st.booleans()):
        edges = [*sorted(draw(st.sets(moments, min_size=1, max_size=5))), None]
        broken = st.sampled_from([Fraction(0), ONE])
        capacity = [CapacitySpan(*span, ONE, draw(broken)) for span in pairwise(edges) if draw(st.booleans())]
    capacity = [replace(one, fits=draw(st.none() | fits)) for one in capacity]
    return Account(capacity, draw(uses_of(WEIGHTS)), is_gpu=True)


@st.composite
def counts(draw):
    capacity = []
    for _ in range(draw(st.integers(0, 3))):
        (start, end), units = draw(intervals()), draw(st.integers(0, 4))
        capacity.append(CapacitySpan(start, end, Fraction(units), Fraction(draw(st.integers(0, units)))))
    return Account(capacity, draw(uses_of([*WEIGHTS, Fraction(3)])))


accounts = gpus() | counts()


@given(accounts, windows)
def test_the_parts_add_up_to_the_capacity(account, window):
    assert sum(gpu_hours(split(account, *window)).values()) == capacity_hours(account, *window)


@given(accounts, windows)
def test_no_part_but_variance_is_negative(account, window):
    assert all(part.gpus > 0 for part in split(account, *window) if part.category != VARIANCE)


@given(accounts, windows, st.randoms())
def test_the_order_of_intervals_does_not_matter(account, window, random):
    shuffled = replace(
        account,
        capacity=random.sample(account.capacity, len(account.capacity)),
        uses=random.sample(account.uses, len(account.uses)),
    )
    assert split(shuffled, *window) == split(account, *window)


@given(accounts, windows, st.integers(-3, 23).map(second))
def test_windows_that_adjoin_add_up_to_the_whole(account, window, cut):
    start, end = window
    cut = min(max(cut, start), end)
    halves = [*split(account, start, cut), *split(account, cut, end)]
    assert gpu_hours(halves) == gpu_hours(split(account, start, end))


@settings(max_examples=200)
@given(accounts, windows)
def test_parts_are_those_of_each_second(account, window):
    parts, total = split(account, *window), dict.fromkeys(Category, Fraction(0))
    for now, expected in by_second(account, *window):
        there = [part for part in parts if part.start <= now < part.end]
        assert Counter((part.category, part.key) for part in there) == Counter(expected.keys())
        assert {(part.category, part.key): part.gpus for part in there} == expected
        for (category, _), amount in expected.items():
            total[Category(category)] += amount / 3600
    assert gpu_hours(parts) == total


@given(accounts, windows)
def test_equal_parts_that_adjoin_are_one(account, window):
    parts = split(account, *window)
    ends = {(part.category, part.key, part.gpus, part.end) for part in parts}
    assert not any((part.category, part.key, part.gpus, part.start) in ends for part in parts)


@given(gpus(), windows)
def test_the_uses_of_a_gpu_are_charged_all_of_it_at_most(account, window):
    parts = [part for part in split(account, *window) if part.category in (HELD, UNMANAGED)]
    for moment in {part.start for part in parts}:
        assert sum(part.gpus for part in parts if part.start <= moment < part.end) <= 1


@given(gpus(), windows, st.data())
def test_a_use_changes_nothing_of_the_time_in_which_it_is_not(account, window, data):
    assume(account.uses)
    one = data.draw(st.sampled_from(account.uses))
    without = replace(account, uses=[use for use in account.uses if use is not one])
    for start, end in [(window[0], min(window[1], one.start)), (max(window[0], one.end or window[1]), window[1])]:
        assert split(without, start, end) == split(account, start, end)
