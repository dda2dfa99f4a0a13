"""The forecast of costs from the ledger and its roll-ups: posted, committed, and what such days usually cost."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from allocations.models import Allocation
from allocations.requests import cost_forecast
from allocations.requests.cost_forecast import CostForecast
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.costs import cost_history, ledger, rollups, services
from quotas.costs.calendar import ONE_DAY, UTC_CALENDAR, Calendar
from quotas.costs.filters import EVERYTHING, And, Comparison, Operator, Or, Where, as_filter
from quotas.costs.forecast import Forecast, PastDay, day_parts
from quotas.costs.models import Price
from quotas.costs.questions import Question
from quotas.costs.rating import MICROSECOND, MICROSECONDS_PER_HOUR, Window
from quotas.metering.hours import HOUR
from quotas.metering.models import UsageInterval
from tests.support import cost_answers
from tests.support.capacity import hold_gpu
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import person
from tests.support.quotas import T0, hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
DAY = 24
NOW = T0 + 20 * ONE_DAY + 6 * HOUR
"""Six o'clock on a Sunday, after 20 days."""
PERIOD = Window(T0 + 20 * ONE_DAY, T0 + 24 * ONE_DAY)
PRICE, ZERO = Fraction("1.1"), Fraction(0)
BERLIN = Calendar(ZoneInfo("Europe/Berlin"))


@pytest.fixture(autouse=True)
def catalog(team: Team, other_team: Team, project: Project) -> None:
    fleet(team, other_team)


def found(where: Where = EVERYTHING, window: Window = PERIOD, calendar: Calendar = UTC_CALENDAR) -> CostForecast:
    return cost_forecast.in_window(cost_answers.question(window, where=where, calendar=calendar, now=NOW))


def rest(answer: CostForecast) -> Forecast:
    assert answer.forecast is not None, answer.unknown
    return answer.forecast


def every_day(count: int, start: float = 8, end: float = 18, **values: Any) -> None:
    """Use one GPU from 8 to 18 o'clock on each of the last days before today."""
    for day in range(20 - count, 20):
        used(hour(day * DAY + start), hour(day * DAY + end), **values)


def running(start: float, count: int = 1, ends_at: datetime | None = None, **values: Any) -> UUID:
    """Record a hold that runs, of an allocation that ends at a date, or of a Job."""
    holder = uuid4()
    if ends_at is not None:
        project = Project.objects.first()
        assert project
        with clock.frozen(hour(start)):
            holder = allocate(person(project.team), project, ends_at=ends_at.isoformat()).pk
    used(hour(start), None, count, holder, **values)
    return holder


def test_posted_is_what_the_ledger_has_rated_so_far() -> None:
    used(hour(19 * DAY), hour(20 * DAY + 2), 3)
    assert found().rated.cost == 3 * 2 * PRICE


def test_a_running_hold_without_an_end_is_committed_until_the_period_ends() -> None:
    running(20 * DAY + 5, 2)
    assert (found().rated.cost, found().committed.cost) == (2 * PRICE, 2 * (4 * DAY - 6) * PRICE)


def test_a_running_allocation_is_committed_until_its_end() -> None:
    running(20 * DAY + 5, ends_at=NOW + 10 * HOUR)
    assert found().committed.cost == 10 * PRICE


def test_an_allocation_that_ends_after_the_period_is_committed_until_the_period_ends() -> None:
    running(20 * DAY + 5, ends_at=PERIOD.end + ONE_DAY)
    assert found().committed.cost == (4 * DAY - 6) * PRICE


def test_hours_that_an_allocation_has_left_count_from_its_hold(project: Project) -> None:
    with clock.frozen(NOW - 2 * HOUR):
        row = allocate(person(project.team), project, hours=Decimal(8))
    Allocation.objects.filter(pk=row.pk).update(held_since=NOW - 2 * HOUR)
    used(NOW - 2 * HOUR, None, 1, row.pk)
    assert found().committed.cost == 6 * PRICE


def test_what_is_being_released_is_committed_to_nothing() -> None:
    holder = running(20 * DAY + 5, ends_at=NOW + 10 * HOUR)
    Allocation.objects.filter(pk=holder).update(desired=Allocation.Desired.RELEASED)
    assert (found().committed.cost, found().rated.cost) == (ZERO, PRICE)


def test_what_is_held_past_its_end_is_committed_to_nothing_more() -> None:
    running(20 * DAY, ends_at=NOW - HOUR)
    assert found().committed.cost == 0


def test_a_known_future_price_counts_from_its_start() -> None:
    running(20 * DAY + 6)
    with clock.frozen(NOW):
        services.set_price(SYSTEM, "l40s", "2", "EUR", NOW + 10 * HOUR, "test")
    assert found().committed.cost == 10 * PRICE + 2 * (4 * DAY - 6 - 10)


def test_slices_that_take_more_than_their_gpu_are_committed_to_what_they_will_be_charged() -> None:
    """Two of four sevenths each: the second has what the first leaves."""
    for number in range(2):
        hold_gpu(f"gpu-0/{number}", 20 * DAY + number, None, gpu_share=Fraction(4, 7))
    hold_gpu("gpu-1/0", 20 * DAY, None, gpu_share=Fraction(1, 3))
    [billed] = ledger.sums([NOW, PERIOD.end], (), {}, PERIOD.end)
    assert found().committed == billed.usage
    assert billed.usage.gpu_hours == (4 * DAY - 6) * Fraction(4, 3)


def test_days_in_the_past_have_what_was_used_in_them() -> None:
    every_day(20)
    [*_, last] = cost_history.read(cost_answers.question(PERIOD, now=NOW)).days
    assert last.time.start == T0 + 19 * ONE_DAY
    assert last.used == {("l40s", "l40s/whole"): Fraction(10)}


def test_what_is_usual_and_not_committed_is_expected() -> None:
    """Each day has 10 hours of use; of today a quarter is over, and the days that remain are 3.75."""
    every_day(20)
    assert rest(found()).expected == Fraction(15, 4) * 10 * PRICE
    running(20 * DAY + 6)
    assert (rest(found()).expected, rest(found()).committed) == (ZERO, (4 * DAY - 6) * PRICE)


def test_use_that_runs_on_is_forecast_once_and_is_what_is_billed_in_the_end() -> None:
    used(hour(-100), None, 2)
    used(hour(7 * DAY), None, 3)
    before = found()
    whole = before.rated.priced_cost + before.committed.priced_cost + rest(before).expected
    [billed] = ledger.sums([PERIOD.start, PERIOD.end], (), {}, PERIOD.end)
    assert (whole, rest(before).expected) == (billed.usage.priced_cost, ZERO)


def test_use_that_ran_on_was_no_error_of_the_past() -> None:
    """Five GPUs more since a week: at each moment since then they ran already."""
    used(hour(-100), None, 1)
    used(hour(14 * DAY), None, 5)
    assert rest(found()).below == 0
    ran = rest(found()).above
    UsageInterval.objects.filter(count=5).delete()
    for day in range(14, 21):
        used(hour(day * DAY), hour(day * DAY + DAY) if day < 20 else None, 5)
    assert ran < rest(found()).above


def carried_by_its_own_calculation(day: PastDay, days_before: int, rows: list[UsageInterval]) -> Fraction:
    """Return the GPU-hours in a day of what ran when the day so many days before began, use by use."""
    total = Fraction(0)
    begin = UTC_CALENDAR.start_of(day.time.date - days_before * ONE_DAY)
    for row in rows:
        if row.start <= begin and (row.end is None or row.end > begin):
            until = min(row.end or day.time.end, day.time.end)
            total += row.gpus * Fraction(
                max(timedelta(0), until - max(row.start, day.time.start)) // MICROSECOND, MICROSECONDS_PER_HOUR
            )
    return total


def test_what_a_day_has_of_holds_that_ran_before_is_found_by_the_day_at_which_they_ran() -> None:
    starts_and_ends = [(0, 30), (30, 100), (24, 240), (47, 48), (47, 49), (100, 400), (-50, 240), (200, None)]
    for start, end in starts_and_ends:
        used(hour(start), None if end is None else hour(end), 2, gpu_share=Fraction(1, 3))
    rows = list(UsageInterval.objects.all())
    days = cost_history.read(cost_answers.question(PERIOD, now=NOW)).days
    assert len(days) == 23
    for place, day in enumerate(days):
        for back, carried in enumerate(day.carried[: place + 1]):
            expected = carried_by_its_own_calculation(day, back, rows)
            assert sum(carried.values(), Fraction(0)) == expected, (day.time.date, back)


@pytest.mark.parametrize("calendar", [UTC_CALENDAR, BERLIN, Calendar(ZoneInfo("Asia/Kolkata"))])
def test_the_forecast_is_the_same_with_and_without_roll_ups(calendar: Calendar) -> None:
    every_day(18, 7.3, 18.1, gpu_share=Fraction(1, 3))
    every_day(9, 20, 30)
    running(19 * DAY + 5.5, gpu_share=Fraction(1, 8))
    window = Window(T0 + 18 * ONE_DAY, PERIOD.end)
    before = found(window=window, calendar=calendar)
    rollups.roll_up(LOCAL, hour(0), hour(20 * DAY))
    assert rollups.rolled_up_hours(LOCAL)
    assert found(window=window, calendar=calendar) == before
    assert rest(before).expected > 0


def test_days_are_those_of_the_time_zone() -> None:
    every_day(16, 23, 24)
    days = cost_history.read(cost_answers.question(PERIOD, calendar=BERLIN, now=NOW)).days
    assert [day.time.start for day in days] == [hour(number * DAY - 1) for number in range(5, 20)]
    assert [sum(day.used.values()) for day in days] == [1] * 15
    assert [part.hours for part in day_parts(hour(0), hour(23), BERLIN)] == [23]


def test_days_of_a_zone_with_half_hours_cut_no_hour_of_the_roll_ups() -> None:
    """Its midnights are at half past an hour in UTC. That hour is of the day that begins in it."""
    every_day(16, 18, 19)
    kolkata = Calendar(ZoneInfo("Asia/Kolkata"))
    days = cost_history.read(cost_answers.question(PERIOD, calendar=kolkata, now=NOW)).days
    assert {kolkata.start_of(day.time.date) - day.time.start for day in days} == {HOUR / 2}
    assert {day.time.hours for day in days} == {24}
    assert [sum(day.used.values()) for day in days] == [0, *[1] * 15]


def test_13_days_of_history_are_unknown_and_14_are_known() -> None:
    every_day(13)
    assert (found().forecast, found().unknown) == (None, "unknown: 13 days of history, 14 are needed")
    every_day(14)
    assert (found().unknown, found().history_days) == (None, 14)


def test_the_history_of_a_scope_begins_with_its_own_first_use() -> None:
    every_day(20, team="language", project="language-train", member="li")
    every_day(3)
    assert found({"team": {"vision"}}).unknown == "unknown: 3 days of history, 14 are needed"
    assert found({"team": {"language"}}).unknown is None


def test_a_team_that_was_idle_for_weeks_has_a_history() -> None:
    used(hour(-2000), hour(-1990))
    assert (found().history_days, rest(found()).expected) == (56, ZERO)


def test_what_never_was_used_has_no_history() -> None:
    assert (found().unknown, found().rated.cost) == ("unknown: 0 days of history, 14 are needed", ZERO)


def test_a_scope_has_its_own_use_and_commitments() -> None:
    every_day(20)
    running(20 * DAY)
    alone = {key: found({key: {value}}) for key, value in [("team", "vision"), ("project", "vision-train")]}
    every_day(20, team="language", project="language-train", member="li")
    running(20 * DAY, 3, team="language", project="language-train", member="li")
    again = {key: found({key: {value}}) for key, value in [("team", "vision"), ("project", "vision-train")]}
    assert again == alone
    assert found().committed.cost == 4 * (4 * DAY - 6) * PRICE
    assert found({"member": {"li"}}).committed.cost == 3 * (4 * DAY - 6) * PRICE


@pytest.mark.parametrize(
    "where",
    [
        Comparison("flavor", Operator.EQUALS, ["l40s"]),
        Comparison("label:stage", Operator.EQUALS, ["prod"]),
        Comparison("offering", Operator.STARTS_WITH, ["l40s/"]),
        Or((Comparison("member", Operator.EQUALS, ["ada"]), Comparison("kind", Operator.EQUALS, ["mig"]))),
        And((Comparison("team", Operator.CONTAINS, ["angu"], is_negated=True),)),
    ],
    ids=lambda where: where.key if isinstance(where, Comparison) else type(where).__name__,
)
def test_a_filter_keeps_the_same_of_the_past_of_now_and_of_what_runs(where: Where) -> None:
    every_day(20, labels={"stage": "prod"})
    running(20 * DAY, labels={"stage": "prod"})
    alone = found()
    assert alone.forecast
    assert alone.rated.cost and alone.committed.cost
    others: dict[str, Any] = {"team": "language", "project": "language-train", "member": "li", "flavor": "a100"}
    others |= {"offering": "a100/mig-3g.40gb"}
    every_day(30, labels={"stage": "test"}, **others)
    running(20 * DAY - 5, 3, labels={"stage": "test"}, **others)
    assert found(where) == alone != found()


def test_what_has_no_price_makes_the_forecast_incomplete() -> None:
    every_day(20)
    assert found().is_complete
    every_day(20, flavor="new", offering="new/whole")
    assert not found().is_complete
    assert rest(found()).expected == Fraction(15, 4) * 10 * PRICE


def test_nothing_that_was_used_has_a_price() -> None:
    Price.objects.all().delete()
    every_day(20)
    running(20 * DAY)
    assert (found().forecast, found().unknown) == (None, "unknown: nothing that was used has a price")


def test_a_member_names_only_what_they_see(other_team: Team, member: User) -> None:
    stranger = person(other_team)
    for named in ({"team": "language"}, {"member": stranger.username}, {"project": "none"}, {"department": "none"}):
        with pytest.raises(NotVisible):
            cost_forecast.visible(member, Question(PERIOD, NOW), named)
    used(hour(20 * DAY), hour(20 * DAY + 1), 5, team="language", project="language-train", member="li")
    used(hour(20 * DAY), hour(20 * DAY + 1), 2, member=member.username)
    used(hour(20 * DAY), hour(20 * DAY + 1), 1)

    def gpu_hours(user: User, named: dict[str, str], where: Where = EVERYTHING) -> Fraction:
        question = Question(PERIOD, NOW, where=as_filter(where))
        return cost_forecast.in_window(cost_forecast.visible(user, question, named)).rated.gpu_hours

    assert gpu_hours(member, {"member": member.username}) == 2
    assert gpu_hours(member, {}) == 3
    assert gpu_hours(member, {}, {"team": ["language"]}) == 0
    assert gpu_hours(member, {"member": member.username}, {"flavor": ["l40s"]}) == 2
    assert gpu_hours(member, {"member": member.username}, {"flavor": ["h100"]}) == 0
    assert gpu_hours(person(platform_role="auditor"), {"team": ""}) == 8
    assert gpu_hours(person(), {}) == 0


def test_the_number_of_statements_does_not_grow() -> None:
    def grow() -> None:
        for _ in range(3):
            every_day(20)
            running(20 * DAY, ends_at=NOW + HOUR)
        rollups.roll_up(LOCAL, hour(0), hour(10 * DAY))

    every_day(15)
    running(20 * DAY, ends_at=NOW + HOUR)
    assert found().forecast
    assert_constant(found, grow, at_most=10)
