"""What was held past its end because the portal was down: flagged, and not charged if the operator says so."""

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from allocations.domain.observed import Intent
from allocations.domain.phases import Ending
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold as hold_mode
from allocations.models import Allocation, Transition
from allocations.reconcile import deadlines, mirror
from allocations.reconcile.mirror_writer import record_observations
from allocations.requests import services
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.costs import rollups, selectors
from quotas.costs.rating import Window
from quotas.metering import balance, overtime
from quotas.metering.models import Correction, HourTotal, UsageInterval
from tests.support import cost_answers
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import at, hold_quota, seen

pytestmark = pytest.mark.django_db
PRICE = Fraction(11, 10)


@pytest.fixture
def row(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of two l40s, held since noon and until one o'clock."""
    fleet(team)
    with clock.frozen(at(-60)):
        row = allocate(member, project, name="train", count=2, ends_at=at(3600).isoformat())
    record_observations(LOCAL, [seen(hold_quota(row, 1), 0)])
    return spec_of_row.rows().get(pk=row.pk)


def expire(row: Allocation, second: float) -> bool:
    """Apply the deadlines of the allocation as a worker does at this second."""
    with clock.frozen(at(second)):
        spec, snapshot = spec_of_row.resolved_spec(row), mirror.of_project(LOCAL, row.project.namespace)
        limits, intent = spec_of_row.deadlines(row), spec_of_row.intent(row)
        assert isinstance(intent, Intent)
        return deadlines.apply(row, spec, hold_mode.assess(spec, intent, snapshot, {}, clock.now(), limits))


def release(row: Allocation, second: float) -> None:
    record_observations(LOCAL, [seen(hold_quota(row, 9, listed=False), second)])


def history() -> list[tuple[datetime, datetime | None, bool, bool]]:
    rows = UsageInterval.objects.order_by("start")
    return [(one.start, one.end, one.overtime, one.uncharged) for one in rows]


def cost(row: Allocation, until: float) -> tuple[Fraction, Fraction | None]:
    found = selectors.charges_to_date([row.pk], at(until))[row.pk]
    return found.reserved, found.cost


def test_an_allocation_that_ends_in_time_has_no_overtime(row: Allocation) -> None:
    assert expire(row, 3605)
    release(row, 3700)
    assert history() == [(at(0), at(3700), False, False)]


def test_what_is_held_past_the_end_is_flagged_if_the_portal_ended_it_late(row: Allocation) -> None:
    assert expire(row, 7200)
    release(row, 7300)
    assert history() == [(at(0), at(3600), False, False), (at(3600), at(7300), True, False)]
    assert cost(row, 9000)[1] == 2 * PRICE * Fraction(7300, 3600)


def test_it_is_not_charged_if_the_operator_says_so(row: Allocation, settings: Any) -> None:
    settings.CHARGE_OVERTIME = False
    assert expire(row, 7200)
    release(row, 7300)
    assert history()[1] == (at(3600), at(7300), True, True)
    assert cost(row, 9000) == (2 * Fraction(7300, 3600), 2 * PRICE)


def test_the_bill_by_sql_agrees(row: Allocation, settings: Any) -> None:
    settings.CHARGE_OVERTIME = False
    expire(row, 7200)
    release(row, 7200)
    found = cost_answers.costs(Window(at(0), at(9000)), now=at(9000))
    assert (found.gpu_hours, found.total) == ("4.000000", "2.2000")


def test_a_roll_up_has_it_at_the_price_0(row: Allocation, settings: Any) -> None:
    settings.CHARGE_OVERTIME = False
    expire(row, 7200)
    release(row, 7200)
    with clock.frozen(at(4 * 3600)):
        rollups.roll_up(LOCAL, at(0), at(3 * 3600))
    overtime = HourTotal.objects.get(start=at(3600), category="held")
    assert overtime.price == 0
    assert overtime.amount / overtime.denominator == 2 * 3_600_000_000
    found = cost_answers.costs(Window(at(0), at(10800)), now=at(10800))
    assert (found.gpu_hours, found.unpriced_gpu_hours, found.total) == ("4.000000", "0", "2.2000")


def test_a_later_setting_changes_no_past_bill(row: Allocation, settings: Any) -> None:
    expire(row, 7200)
    release(row, 7200)
    before = cost(row, 9000)
    settings.CHARGE_OVERTIME = False
    assert cost(row, 9000) == before


def test_the_timeline_says_why_and_whether_it_is_charged(row: Allocation, settings: Any) -> None:
    settings.CHARGE_OVERTIME = False
    expire(row, 7200)
    message = Transition.objects.get(type="end").message
    assert message.endswith(
        "The portal did not end it in time, at 2026-11-02 13:00:00 UTC. What was held since is not charged."
    )


def test_what_was_given_back_before_the_portal_ended_it_is_overtime_until_then(row: Allocation, settings: Any) -> None:
    """Kueue took the quota back at 13:30, while no worker ran to end the allocation at 13:00."""
    settings.CHARGE_OVERTIME = False
    release(row, 5400)
    assert expire(row, 7200)
    assert history() == [(at(0), at(3600), False, False), (at(3600), at(5400), True, True)]
    assert cost(row, 9000) == (2 * Fraction(5400, 3600), 2 * PRICE)
    correction = Correction.objects.get()
    assert (correction.former_end, correction.end, correction.cause) == (at(5400), at(3600), "overtime")
    with clock.frozen(at(4 * 3600)):
        assert [one for n in range(3) for one in balance.of_hour(LOCAL, at(3600 * n)).failures] == []


def test_hours_that_rolled_up_are_marked_if_what_was_given_back_is_overtime(row: Allocation, settings: Any) -> None:
    settings.CHARGE_OVERTIME = False
    release(row, 5400)
    with clock.frozen(at(4 * 3600)):
        rollups.roll_up(LOCAL, at(0), at(3 * 3600))
        before = cost_answers.costs(Window(at(0), at(10800)), now=at(10800)).total
    assert expire(row, 4 * 3600)
    after = cost_answers.costs(Window(at(0), at(10800)), now=at(10800)).total
    assert (before, after) == ("3.3000", "2.2000")


def test_hours_that_were_asked_are_over_when_they_were_held_and_not_when_it_was_given_back(
    team: Team, member: User, project: Project
) -> None:
    fleet(team)
    with clock.frozen(at(-60)):
        row = allocate(member, project, name="train", count=2, hours=1)
    record_observations(LOCAL, [seen(hold_quota(row, 1), 0)])
    release(row, 5400)
    row = spec_of_row.rows().get(pk=row.pk)
    with clock.frozen(at(7200)):
        assert transitions.end(row, Ending.EXPIRED, "ends_at", "Its time is over.", actor="portal")
    assert history() == [(at(0), at(3600), False, False), (at(3600), at(5400), True, False)]


def test_what_somebody_releases_after_its_end_is_overtime_since_its_end(row: Allocation, member: User) -> None:
    with clock.frozen(at(5400)):
        services.release(member, row)
    release(row, 7200)
    assert history() == [(at(0), at(3600), False, False), (at(3600), at(7200), True, False)]
    assert "did not end it in time" in Transition.objects.get(type="end").message


def test_what_somebody_releases_in_time_is_no_overtime(row: Allocation, member: User) -> None:
    with clock.frozen(at(3590)):
        services.release(member, row)
    release(row, 3700)
    assert history() == [(at(0), at(3700), False, False)]


def test_it_is_recorded_once(row: Allocation) -> None:
    expire(row, 7200)
    row.refresh_from_db()
    assert not expire(row, 7300)
    assert overtime.record(row.pk, at(3600), {"kind": "overtime"}, charged=False) == 0
    assert len(history()) == 2


def test_it_is_recorded_once_of_what_was_given_back(row: Allocation) -> None:
    release(row, 5400)
    for _ in range(2):
        overtime.record(row.pk, at(3600), {"kind": "overtime"}, charged=True)
    assert (len(history()), Correction.objects.count()) == (2, 1)


def test_a_hold_that_began_after_the_end_is_all_overtime(row: Allocation) -> None:
    UsageInterval.objects.all().delete()
    record_observations(LOCAL, [seen(hold_quota(row, 3, listed=False), 4000), seen(hold_quota(row, 4), 5000)])
    expire(row, 7200)
    assert [one for one in history() if one[0] != one[1]] == [(at(5000), None, True, False)]


def test_the_ledger_is_balanced_and_the_time_held_is_the_same(row: Allocation) -> None:
    expire(row, 7200)
    release(row, 7300)
    for hours in range(3):
        assert balance.of_hour(LOCAL, at(3600 * hours)).failures == []
    held = spec_of_row.time(row).held.with_intervals(UsageInterval.objects.values_list("start", "end"))
    assert held.before == timedelta(seconds=7300)


def test_a_hold_that_is_seen_again_opens_no_second_interval(row: Allocation) -> None:
    expire(row, 7200)
    record_observations(LOCAL, [seen(hold_quota(row, 5), 7250, live=False), seen(hold_quota(row, 6), 7260)])
    assert history() == [(at(0), at(3600), False, False), (at(3600), None, True, False)]
