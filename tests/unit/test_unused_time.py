"""What was held while no pod used it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from quotas.costs import rating
from quotas.costs.calendar import UTC_CALENDAR, Calendar, zone
from quotas.costs.rating import NO_LIST, Rate, RatedUsage, Usage, Window
from quotas.costs.unused_time import Held, PodTime, unused, without_pods

T0 = datetime(2026, 11, 2, tzinfo=UTC)
PRICES = {"l40s": [Rate(T0, Fraction(1)), Rate(T0 + timedelta(hours=30), Fraction(3))]}


def at(hour: float) -> datetime:
    return T0 + timedelta(hours=hour)


def held(
    start: float, end: float | None, pods: Sequence[tuple[float, float | None]] = (), since: float | None = 0
) -> Held:
    times = [(at(begin), None if until is None else at(until)) for begin, until in pods]
    usage = Usage("l40s", Fraction(2), at(start), None if end is None else at(end))
    return Held(usage, times, None if since is None else at(since))


def found(
    *pieces: Held, now: float = 48, calendar: Calendar = UTC_CALENDAR
) -> tuple[RatedUsage | None, dict[int, RatedUsage | None]]:
    """Return what is unused in all and by the day of November."""
    answer = unused(pieces, PRICES, NO_LIST, calendar, at(now))
    return answer.whole, {day.day: usage for day, usage in answer.by_day.items()}


def used(hours: float, cost: float) -> RatedUsage:
    return RatedUsage(Fraction(hours), Fraction(0), Fraction(cost))


def test_time_without_a_pod_has_the_price_of_its_moment():
    whole, by_day = found(held(0, 36, [(0, 20), (26, 29)]))
    assert by_day == {2: used(8, 8), 3: used(18, 2 * (2 + 1 + 6 * 3))}
    assert whole == used(26, 50)


def test_an_allocation_without_any_pod_is_unused_until_now():
    assert found(held(0, None), now=10) == (used(20, 20), {2: used(20, 20)})


def test_while_a_pod_is_there_nothing_is_unused():
    assert found(held(0, None, [(0, None)]), now=10) == (RatedUsage(), {2: RatedUsage()})


def test_days_are_those_of_the_calendar():
    _, by_day = found(held(0, 20), calendar=Calendar(zone("Asia/Tokyo")))
    assert by_day == {2: used(30, 30), 3: used(10, 10)}


def test_a_day_that_is_not_recorded_whole_is_not_known_and_so_is_the_sum():
    assert found(held(0, 48, since=12)) == (None, {2: None, 3: used(48, 2 * (6 + 18 * 3))})
    assert found(held(0, 10, since=None)) == (None, {2: None})


def test_what_has_no_price_is_unused_and_has_no_cost():
    whole, _ = found(held(-4, -2, since=-4))
    assert whole == RatedUsage(Fraction(4), Fraction(4))
    assert whole.cost is None


def test_what_has_no_time_has_no_day():
    assert found(held(0, 0), held(60, None)) == (RatedUsage(), {})


def in_order(spans: list[tuple[int, int | None]]) -> list[PodTime]:
    ordered = sorted(spans, key=lambda span: span[0])
    return [(at(start), None if end is None else at(max(start, end))) for start, end in ordered]


TIMES = st.integers(0, 60)
SPANS = st.lists(st.tuples(TIMES, st.one_of(st.none(), TIMES)), max_size=5)


@given(SPANS, TIMES, TIMES)
def test_at_each_moment_there_is_a_pod_or_it_is_unused(spans: list[tuple[int, int | None]], start: int, end: int):
    pods = in_order(spans)
    gaps = list(without_pods(pods, Window(at(start), at(end))))
    for hour in range(61):
        moment = at(hour)
        has_pod = any(begin <= moment and (until is None or moment < until) for begin, until in pods)
        assert any(gap.start <= moment < gap.end for gap in gaps) == (start <= hour < end and not has_pod)


@given(SPANS, TIMES, TIMES)
def test_unused_and_used_add_up_to_what_is_charged(spans: list[tuple[int, int | None]], start: int, end: int):
    one = replace(held(start, end), pods=in_order(spans))
    without = [(gap.start, gap.end) for gap in without_pods(one.pods, Window(at(start), at(end)))]
    unused_part, by_day = found(one, now=60)
    used_part, _ = found(replace(one, pods=without), now=60)
    assert unused_part is not None
    assert used_part is not None
    assert unused_part + used_part == rating.rated_usage([one.usage], PRICES, None, at(60))
    assert sum((usage for usage in by_day.values() if usage), RatedUsage()) == unused_part
