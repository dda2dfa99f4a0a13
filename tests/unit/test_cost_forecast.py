"""The forecast of costs: what is committed is not expected once more, and the range has the forecast in it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from statistics import median
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.costs.calendar import ONE_DAY, Calendar
from quotas.costs.forecast import (
    MAX_DAYS,
    MIN_DAYS,
    Forecast,
    GpuHours,
    PastDay,
    RemainingPart,
    backtest,
    day_parts,
    forecast,
    quantile,
    unpriced,
)

H100, T4 = ("h100", "h100/whole"), ("t4", "t4/whole")
PRICES = {H100: Fraction(3), T4: Fraction("0.4")}
ZERO = Fraction(0)
HOUR = timedelta(hours=1)
BERLIN = Calendar(ZoneInfo("Europe/Berlin"))
TODAY = date(2026, 10, 26)
"""The day after the 25 hours in Berlin, a Monday."""
FEW = settings(max_examples=40)
"""A case is weeks of days, which takes long to draw."""
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")]


def days(count: int, used: GpuHours, calendar: Calendar = BERLIN, today: date = TODAY) -> list[PastDay]:
    """Return so many days before today, of which each hour used the same."""
    parts = day_parts(calendar.start_of(today - count * ONE_DAY), calendar.start_of(today), calendar)
    return [PastDay(part, {key: rate * part.hours for key, rate in used.items()}) for part in parts]


def rest(hours: float, committed: Fraction = ZERO, calendar: Calendar = BERLIN) -> list[RemainingPart]:
    """Return the parts from the start of today on, in each hour of which so much is committed."""
    start = calendar.start_of(TODAY)
    parts = day_parts(start, start + timedelta(hours=hours), calendar)
    return [RemainingPart(part, committed * part.hours, PRICES) for part in parts]


def known(found: Forecast | None) -> Forecast:
    assert found is not None
    return found


def test_what_is_used_all_the_time_is_expected_to_be_used_on() -> None:
    found = known(forecast(days(56, {H100: Fraction(2)}), rest(100)))
    assert found == Forecast(ZERO, 100 * 2 * PRICES[H100], ZERO, ZERO)


def test_only_what_is_usual_beyond_the_commitments_is_new() -> None:
    found = known(forecast(days(56, {H100: Fraction(2)}), rest(100, PRICES[H100] / 2)))
    assert (found.committed, found.expected) == (100 * PRICES[H100] / 2, 100 * PRICES[H100] * Fraction(3, 2))


def test_more_is_committed_than_is_usual_and_nothing_is_new() -> None:
    found = known(forecast(days(56, {H100: Fraction(2)}), rest(100, PRICES[H100] * 5)))
    assert (found.committed, found.expected) == (500 * PRICES[H100], ZERO)


@pytest.mark.parametrize(("count", "is_known"), [(0, False), (MIN_DAYS - 1, False), (MIN_DAYS, True)])
def test_fewer_than_14_days_are_no_history(count: int, is_known: bool) -> None:
    assert (forecast(days(count, {H100: Fraction(1)}), rest(10)) is not None) == is_known


def test_a_weekday_is_expected_to_be_as_its_like() -> None:
    """Used on Mondays alone: of the week that begins today, a Monday, one day."""
    history = [
        replace(day, used=day.used if day.time.date.weekday() == 0 else {}) for day in days(56, {H100: Fraction(1)})
    ]
    assert known(forecast(history, rest(7 * 24))).expected == 24 * PRICES[H100]


def test_one_odd_week_of_eight_is_not_expected_again() -> None:
    history = days(56, {H100: Fraction(1)})
    odd = [replace(day, used={H100: 1000 * day.time.hours}) for day in history[:7]]
    assert known(forecast([*odd, *history[7:]], rest(50))).expected == 50 * PRICES[H100]


@pytest.mark.parametrize(
    ("today", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 10, 24), 24)]
)
def test_days_of_23_and_25_hours_are_expected_to_cost_as_much_by_the_hour(today: date, hours: int) -> None:
    start, end = BERLIN.start_of(today), BERLIN.start_of(today + ONE_DAY)
    [part] = day_parts(start, end, BERLIN)
    history = days(56, {H100: Fraction(1)}, today=today)
    found = known(forecast(history, [RemainingPart(part, ZERO, PRICES)]))
    assert part.hours == hours
    assert found.expected == hours * PRICES[H100]


def test_what_lasted_25_hours_is_usual_for_24_of_24() -> None:
    """The last Sunday had 25 hours; the next has 24."""
    history = days(14, {H100: Fraction(1)})
    [sunday] = [day for day in history if day.time.hours == 25]
    [part] = day_parts(BERLIN.start_of(TODAY + 6 * ONE_DAY), BERLIN.start_of(TODAY + 7 * ONE_DAY), BERLIN)
    found = known(forecast(history, [RemainingPart(part, ZERO, PRICES)]))
    assert sunday.used[H100] == 25
    assert found.expected == 24 * PRICES[H100]


def test_past_days_have_the_prices_of_the_time_that_remains() -> None:
    [now, later] = rest(48)
    dearer = replace(later, prices={**PRICES, H100: Fraction(9)})
    found = known(forecast(days(28, {H100: Fraction(1)}), [now, dearer]))
    assert found.expected == 24 * 3 + 24 * 9


def test_what_has_no_price_is_named_and_has_no_cost() -> None:
    history, remaining = days(28, {H100: Fraction(1), ("new", "new/whole"): Fraction(7)}), rest(10)
    assert known(forecast(history, remaining)).expected == 10 * PRICES[H100]
    assert unpriced(history, remaining) == {("new", "new/whole")}
    assert unpriced(days(28, {H100: Fraction(1)}), remaining) == set()


def test_an_error_of_the_past_widens_the_range_to_its_side() -> None:
    """Twice as much in the last week of three: past forecasts were too low, and none was too high."""
    history = days(14, {H100: Fraction(1)}, today=TODAY - 7 * ONE_DAY) + days(7, {H100: Fraction(2)})
    found = known(forecast(history, rest(24)))
    assert (found.below, found.above) == (ZERO, 24 * PRICES[H100])


def test_what_already_ran_was_no_error() -> None:
    """The same, but what was used beyond the usual had begun before the history did."""
    history = days(14, {H100: Fraction(1)}, today=TODAY - 7 * ONE_DAY) + days(7, {H100: Fraction(2)})
    carried = [replace(day, carried=[day.used] * (place + 1)) for place, day in enumerate(history)]
    assert set(backtest(carried, 3, PRICES)) == {ZERO}
    assert set(backtest(history, 3, PRICES)) > {ZERO}


def test_a_backtest_knows_nothing_of_the_days_that_it_forecasts() -> None:
    """Of 14 days the last is odd: it is the last case, and no other case for one day has it."""
    history = days(14, {H100: Fraction(1)})
    odd = [*history[:-1], replace(history[-1], used={H100: 11 * history[-1].time.hours})]
    assert backtest(odd, 1, PRICES) == [*[ZERO] * 6, 10 * PRICES[H100]]


def test_a_longer_time_is_tested_on_blocks_of_at_most_half_the_days_that_can_be() -> None:
    assert [len(backtest(days(count, {}), 31, PRICES)) for count in (14, 28, 56)] == [5, 12, 26]
    assert [len(backtest(days(56, {}), count, PRICES)) for count in (1, 7)] == [49, 43]


amounts = st.fractions(min_value=0, max_value=50, max_denominator=8)
uses = st.dictionaries(st.sampled_from([H100, T4]), amounts)
zones = st.sampled_from(ZONES)
starts = st.integers(0, 365 * 24 * 60).map(lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + minutes * HOUR / 60)


@st.composite
def histories(draw: st.DrawFn, fewest: int = MIN_DAYS) -> tuple[list[PastDay], list[RemainingPart]]:
    """Days of any use before a moment, and what remains from it on, with any commitments and prices."""
    calendar, now = Calendar(draw(zones)), draw(starts)
    today, count = calendar.day_of(now), draw(st.integers(fewest, MAX_DAYS + 7))
    begin, midnight = calendar.start_of(today - count * ONE_DAY), calendar.start_of(today)
    past = [
        PastDay(part, draw(uses), draw(st.lists(uses, max_size=3))) for part in day_parts(begin, midnight, calendar)
    ]
    end = now + draw(st.integers(1, 31 * 24)) * HOUR
    prices = st.fixed_dictionaries({}, optional={H100: amounts, T4: amounts})
    remaining = [RemainingPart(part, draw(amounts), draw(prices)) for part in day_parts(now, end, calendar)]
    return past, remaining


@FEW
@given(histories())
def test_each_part_costs_the_more_of_what_is_committed_and_what_is_usual(
    case: tuple[list[PastDay], list[RemainingPart]],
) -> None:
    """By a calculation of its own: the median of eight like weekdays, each by the hour."""
    past, remaining = case
    total = ZERO
    for part in remaining:
        rates = [
            sum((hours * part.prices.get(key, 0) for key, hours in day.used.items()), ZERO) / day.time.hours
            for day in past
            if (part.time.date - day.time.date).days % 7 == 0
        ]
        total += max(part.committed, median(rates[-8:]) * part.time.hours)
    found = known(forecast(past, remaining))
    assert found.committed == sum(part.committed for part in remaining)
    assert found.committed + found.expected == total


@FEW
@given(histories())
def test_the_range_has_the_forecast_in_it_and_is_not_below_zero(
    case: tuple[list[PastDay], list[RemainingPart]],
) -> None:
    found = known(forecast(*case))
    assert min(found.expected, found.below, found.above) >= 0
    assert found.below <= found.committed + found.expected


@FEW
@given(histories(fewest=MAX_DAYS), uses)
def test_a_day_before_the_eight_like_weekdays_changes_nothing(
    case: tuple[list[PastDay], list[RemainingPart]], used: GpuHours
) -> None:
    past, remaining = case
    whole = past[-MAX_DAYS:]
    first = whole[0].time
    older = replace(first, date=first.date - ONE_DAY, start=first.start - 24 * HOUR, end=first.start)
    assert forecast([PastDay(older, used), *whole], remaining) == forecast(whole, remaining)


@st.composite
def all_committed(draw: st.DrawFn) -> tuple[list[PastDay], list[RemainingPart], Fraction]:
    """Holds that began at any time before now and run beyond the period; prices change at any time. With what the
    period will be billed from now on, hold by hold.
    """
    calendar, now = Calendar(draw(zones)), draw(starts)
    today = calendar.day_of(now)
    begin, midnight = calendar.start_of(today - draw(st.integers(14, 60)) * ONE_DAY), calendar.start_of(today)
    end = now + draw(st.integers(1, 31 * 24)) * HOUR
    began = st.integers(0, (now - begin) // HOUR).map(lambda hours: now - hours * HOUR)
    holds = draw(st.lists(st.tuples(began, st.sampled_from([H100, T4]), amounts)))
    change = now + draw(st.integers(1, 31 * 24)) * HOUR
    now_in_force, later = ({H100: draw(amounts), T4: draw(amounts)} for _ in range(2))

    def held(start: datetime, until: datetime) -> dict[tuple[str, str], Fraction]:
        found = {H100: ZERO, T4: ZERO}
        for since, key, gpus in holds:
            found[key] += gpus * max(ZERO, Fraction((until - max(start, since)) // HOUR.resolution, 3_600_000_000))
        return found

    past = [PastDay(part, held(part.start, part.end)) for part in day_parts(begin, midnight, calendar)]
    remaining = []
    for part in day_parts(now, end, calendar, [change]):
        prices = later if part.start >= change else now_in_force
        committed = sum((hours * prices[key] for key, hours in held(part.start, part.end).items()), ZERO)
        remaining.append(RemainingPart(part, committed, prices))
    billed = ZERO
    for _, key, gpus in holds:
        before, after = (min(change, end) - now) / HOUR, max(timedelta(0), end - change) / HOUR
        billed += gpus * (Fraction(before) * now_in_force[key] + Fraction(after) * later[key])
    return past, remaining, billed


@FEW
@given(all_committed())
def test_no_use_is_counted_twice_if_all_is_committed_the_forecast_is_what_will_be_billed(
    case: tuple[list[PastDay], list[RemainingPart], Fraction],
) -> None:
    past, remaining, billed = case
    found = known(forecast(past, remaining))
    assert (found.committed + found.expected, found.expected) == (billed, ZERO)


@given(zones, starts, st.integers(1, 60 * 24), st.lists(starts, max_size=3))
def test_parts_adjoin_and_each_has_one_date(zone: ZoneInfo, start: datetime, hours: int, cuts: list[datetime]) -> None:
    end = start + hours * HOUR
    parts = day_parts(start, end, Calendar(zone), cuts)
    assert (parts[0].start, parts[-1].end) == (start, end)
    assert all(one.end == other.start for one, other in pairwise(parts))
    for part in parts:
        last = part.end - datetime.resolution
        assert {moment.astimezone(zone).date() for moment in (part.start, last)} == {part.date}
        assert not any(part.start < cut < part.end for cut in cuts)


@given(st.lists(amounts, min_size=1), st.fractions(0, 1))
def test_a_quantile_has_that_part_of_the_values_below_it(values: list[Fraction], part: Fraction) -> None:
    found = quantile(values, part)
    assert min(values) <= found <= max(values)
    assert sum(value < found for value in values) <= part * (len(values) - 1) + 1
    assert sum(value > found for value in values) <= (1 - part) * (len(values) - 1) + 1


def test_a_quantile_between_two_values_is_on_the_line_between_them() -> None:
    assert quantile([Fraction(10), ZERO], Fraction(1, 10)) == 1
