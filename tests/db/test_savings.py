"""What could be saved: holds without pods, quiet hours, unused quota, stranded GPUs and unpriced offerings."""

from fractions import Fraction

import pytest

from portal.core import clock
from portal.core.errors import Invalid
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import rollups, services
from quotas.costs.models import Price
from quotas.costs.questions import Question, asked_by
from quotas.costs.rating import RatedUsage, Window
from quotas.costs.savings import possible_savings
from quotas.costs.savings_rules import Layout, SavingKind
from quotas.metering.models import HoldUse
from tests.support.capacity import GPUS, RESOURCES, always, hold_gpu, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet as make_fleet
from tests.support.hold_pods import pods, recorded_since
from tests.support.people import person
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
PRICE = Fraction("1.10")


@pytest.fixture
def staff(team, other_team):
    """Create a fleet of eight l40s and two h100 from Monday on, and record pods from the day before on."""
    with clock.frozen(hour(-24)):
        make_fleet(team, other_team)
        recorded_since(-24)
    record({**RESOURCES, **GPUS}, 0)
    return person(platform_role="auditor")


@pytest.fixture
def member(staff, team):
    return person(team)


def found(user, kind, start=0, end=24, now=None, idle_hours=4):
    now = hour(end if now is None else now)
    with clock.frozen(now):
        question = asked_by(user, Question(Window(hour(start), hour(end)), now))
        savings = possible_savings(question, idle_hours)
    return [one for one in savings.found if one.kind is kind]


def priced(hours, price=PRICE):
    return RatedUsage(Fraction(hours), priced_cost=hours * price)


def test_a_hold_that_never_had_a_pod_is_idle_since_its_start(staff):
    row = used(hour(2), None, 2)
    [one] = found(staff, SavingKind.IDLE_HOLD, now=12)
    assert (one.holder_id, one.since, one.usage, one.per_hour) == (row.holder_id, hour(2), priced(20), 2 * PRICE)
    assert (one.team, one.project, one.member, one.offering) == ("vision", "vision-train", "ada", "l40s/whole")


def test_a_hold_is_idle_since_its_last_pod(staff):
    row = used(hour(2), None)
    pods(row.holder_id, 2, 3)
    pods(row.holder_id, 5, 7)
    [one] = found(staff, SavingKind.IDLE_HOLD, now=12)
    assert (one.since, one.usage) == (hour(7), priced(5))


def test_a_hold_with_a_pod_or_that_had_one_lately_or_that_has_ended_is_not_idle(staff):
    running, lately = used(hour(2), None), used(hour(2), None)
    used(hour(2), hour(11))
    pods(running.holder_id, 3, None)
    pods(lately.holder_id, 3, 9)
    assert found(staff, SavingKind.IDLE_HOLD, now=12) == []
    assert len(found(staff, SavingKind.IDLE_HOLD, now=12, idle_hours=3)) == 1


def test_what_a_job_has_reserved_and_no_pod_uses_is_idle(staff):
    row = used(hour(2), None, member="", unused=True)
    used(hour(2), None, member="")
    [one] = found(staff, SavingKind.IDLE_HOLD, now=12)
    assert (one.holder_id, one.member) == (row.holder_id, "")


def test_of_an_idle_hold_what_is_in_the_window_counts(staff):
    used(hour(2), None)
    [one] = found(staff, SavingKind.IDLE_HOLD, start=24, end=48, now=30)
    assert (one.since, one.usage) == (hour(2), priced(6))


def test_an_idle_slice_is_charged_beside_the_other_uses_of_its_gpu(staff):
    """4g and 3g take more than a GPU together: the second is charged what the first leaves."""
    hold_gpu("gpu-0-mig-4g40gb-5-0", 1, None, gpu_share=Fraction(4, 7), offering="h100/mig-4g.40gb")
    hold_gpu("gpu-0-mig-3g40gb-9-4", 2, None, gpu_share=Fraction(1, 2), offering="h100/mig-3g.40gb")
    hours = {one.offering: one.usage.gpu_hours for one in found(staff, SavingKind.IDLE_HOLD, now=12)}
    assert hours == {"h100/mig-4g.40gb": 11 * Fraction(4, 7), "h100/mig-3g.40gb": 10 * Fraction(3, 7)}


def test_at_night_what_is_held_without_a_pod_counts_at_the_prices_of_the_time(staff):
    row = used(hour(0), hour(24), 2)
    pods(row.holder_id, 8, 18)
    pods(row.holder_id, 22, 23)
    with clock.frozen(hour(3)):
        services.set_price(SYSTEM, "l40s", "2", "EUR", hour(4), "test")
    [one] = found(staff, SavingKind.QUIET_HOURS)
    assert one.usage == priced(8) + priced(2 * (2 + 3), 2)
    assert (one.team, one.project, one.offering, one.holder_id) == (
        "vision",
        "vision-train",
        "l40s/whole",
        row.holder_id,
    )
    assert one.member == row.member


def test_a_weekend_is_quiet_by_day_too(staff):
    used(hour(24 * 5 + 10), hour(24 * 5 + 13))
    [one] = found(staff, SavingKind.QUIET_HOURS, start=24 * 5, end=24 * 6)
    assert one.usage == priced(3)


def test_of_a_time_in_which_no_pods_were_recorded_nothing_is_known(staff):
    used(hour(0), hour(24))
    HoldUse.objects.all().delete()
    assert found(staff, SavingKind.QUIET_HOURS) == []
    recorded_since(21)
    [one] = found(staff, SavingKind.QUIET_HOURS)
    assert one.usage == priced(3)


def test_no_hour_is_counted_as_idle_and_as_quiet(staff):
    row = used(hour(0), None)
    pods(row.holder_id, 8, 18)
    [idle], [quiet] = found(staff, SavingKind.IDLE_HOLD), found(staff, SavingKind.QUIET_HOURS)
    assert (idle.usage, quiet.usage) == (priced(6), priced(6))


def test_a_job_runs_by_its_pods(staff):
    used(hour(0), hour(24), member="")
    used(hour(0), hour(24), member="", unused=True)
    assert [one.usage for one in found(staff, SavingKind.QUIET_HOURS)] == [priced(10)]


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_quota_of_which_a_team_held_nothing_costs_what_lay_idle_for_it(staff, is_rolled_up):
    used(hour(0), hour(10), 2, team="language")
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(10))
    flavors = {(one.team, one.flavor): one.usage for one in found(staff, SavingKind.UNUSED_QUOTA, now=10)}
    assert flavors["vision", "l40s"] == priced(40)
    assert ("language", "l40s") not in flavors


def test_quota_that_others_borrowed_is_not_idle(staff):
    used(hour(0), hour(10), 8, team="language")
    assert "l40s" not in {one.flavor for one in found(staff, SavingKind.UNUSED_QUOTA, now=10)}


def test_of_a_time_that_is_not_rolled_up_the_money_of_quota_is_not_known(staff):
    later = 24 * 10
    assert {one.usage for one in found(staff, SavingKind.UNUSED_QUOTA, end=later)} == {None}
    rollups.roll_up(LOCAL, hour(0), hour(24 * 5))
    assert {one.usage.gpu_hours for one in found(staff, SavingKind.UNUSED_QUOTA, end=later)} == {960, 240}


@pytest.fixture
def stranded(staff):
    """Have a 1g.10gb on each of two h100 of which only whole GPUs are offered."""
    flavor = Flavor.objects.get(name="h100")
    flavor.partitionable = True
    flavor.save()
    always(flavor)
    for n in range(2):
        hold_gpu(f"gpu-{n}-mig-1g10gb-19-0", 6, None, gpu_share=Fraction(1, 7))


def test_stranded_gpus_have_the_slice_that_would_fit(staff, stranded):
    [one] = found(staff, SavingKind.STRANDED, now=7)
    assert one.layouts == [Layout("1g.10gb", Fraction(12, 7), 2)]
    assert (one.flavor, one.usage, one.per_hour) == (
        *("h100", priced(Fraction(12, 7), Fraction("3.20"))),
        Fraction(12, 7) * Fraction("3.20"),
    )


def test_offerings_without_a_price_have_the_hours_that_have_none(staff, member):
    Price.objects.all().delete()
    used(hour(0), hour(3), 2)
    unpriced = {one.offering: one.usage for one in found(staff, SavingKind.UNPRICED, now=10)}
    assert unpriced["l40s/whole"] == RatedUsage(Fraction(6), Fraction(6))
    assert unpriced["h100/whole"] == RatedUsage()
    assert [one.offering for one in found(member, SavingKind.UNPRICED, now=10)] == ["l40s/whole"]


def everything(user, now=30):
    with clock.frozen(hour(now)):
        return possible_savings(asked_by(user, Question(Window(hour(0), hour(48)), hour(now))))


def test_a_member_sees_nothing_of_other_teams_or_of_the_fleet(staff, member, stranded, other_team):
    for team in ("vision", "language"):
        used(hour(0), None, team=team, project=f"{team}-train")
        used(hour(0), hour(24), team=team, project=f"{team}-old")
    own, other, whole = (everything(user).found for user in (member, person(other_team), staff))
    assert {one.team for one in own} == {"vision"}
    assert {one.team for one in other} == {"language"}
    assert {one.kind for one in own} == {SavingKind.IDLE_HOLD, SavingKind.QUIET_HOURS}
    assert {one.kind for one in whole} > {SavingKind.STRANDED}
    of_teams = (SavingKind.IDLE_HOLD, SavingKind.QUIET_HOURS)
    assert [one for one in whole if one.kind in of_teams and one.team == "vision"] == list(own)
    assert everything(person()).found == []


def test_two_worlds_that_differ_in_another_teams_use_give_the_same_answer(member, team):
    own = used(hour(0), None)
    pods(own.holder_id, 3, 5)
    used(hour(1), hour(23), 2, project="vision-dev")
    before = everything(member)
    for n in range(3):
        other = used(hour(n), None if n else hour(20), 1, team="language", project=f"language-{n}")
        pods(other.holder_id, n + 1, n + 2)
    assert len(before.found) > 2
    assert everything(member) == before


def test_statements_do_not_grow_with_what_there_is(staff):
    def grow(number=49):
        for n in range(number):
            row = used(hour(0), None, project=f"project-{number}-{n}", team=f"team-{n}")
            pods(row.holder_id, 1, 2)
            hold_gpu(f"gpu-{number}-{n}", 0, None, node=f"h100-{n}")

    grow(1)
    assert_constant(lambda: everything(staff), grow, at_most=45)


@pytest.mark.parametrize(("days", "idle_hours"), [(93, 4), (1, 0), (1, 721)])
def test_too_long_a_window_and_too_many_hours_are_refused(staff, days, idle_hours):
    with pytest.raises(Invalid):
        found(staff, SavingKind.IDLE_HOLD, end=24 * days, idle_hours=idle_hours)
