"""The simulated past of a demo: plausible, marked, balanced, within quotas, and written once."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.forms.models import model_to_dict

from allocations.models import Allocation
from demo.simulated_history import generator, world, writer
from demo.simulated_history.world import NothingRecorded
from portal.core import clock, money
from portal.tenants.models import User
from quotas.catalog.models import Offering, Pool
from quotas.costs.models import NodeInterval, Price
from quotas.costs.rates import by_flavor
from quotas.limits.models import Limit, QuotaChange
from quotas.metering import hold_use, simulated
from quotas.metering.hours import DAY, HOUR
from quotas.metering.models import (
    BalanceProof,
    CapacityInterval,
    DayTotal,
    DirtyHour,
    ForeignUse,
    HoldUse,
    HourTotal,
    RolledUpHour,
    UsageInterval,
)
from tests.support import demo_fleet, simulated_sums
from tests.support.clusters import LOCAL
from tests.support.pages import browser_of, text
from tests.support.people import client

pytestmark = pytest.mark.django_db
STARTED = datetime(2026, 11, 25, 16, 7, tzinfo=UTC)
"""When the demo's ledger begins, on a Wednesday."""
NOW = STARTED + timedelta(minutes=23)
LEDGER = (CapacityInterval, UsageInterval, ForeignUse, NodeInterval, QuotaChange, Price)
ROLLUPS = (HourTotal, DayTotal, RolledUpHour, DirtyHour, BalanceProof)


@pytest.fixture(autouse=True)
def demo(db):
    demo_fleet.record(STARTED)
    with clock.frozen(NOW):
        yield


@pytest.fixture
def month():
    return writer.write(LOCAL, 30)


@pytest.fixture
def week():
    found = writer.write(LOCAL, 8)
    writer.complete(LOCAL)
    return found


def contents(*models: Any):
    return {model.__name__: [model_to_dict(row) for row in model.objects.order_by("pk")] for model in models}


def test_a_month_has_what_happens_in_a_month(month):
    assert (month.start, month.until) == (STARTED.replace(hour=0, minute=0) - 30 * DAY, STARTED)
    states = {one.found.state for one in month.capacity}
    assert states >= {"", "node_not_ready", "cordoned"} and states & {"unhealthy", "tainted"}
    holders = {(one.begin.attribution.team, one.begin.attribution.project) for one in month.holds}
    assert holders == {(team, f"{team}-{kind}") for team in ("vision", "language") for kind in ("train", "dev")}
    assert {one.begin.attribution.flavor for one in month.holds} == {"h100", "a100", "l40s", "t4"}
    of_jobs = [one for one in month.holds if not one.begin.attribution.member]
    assert any(one.begin.attribution.unused for one in of_jobs) and any(one.begin.attribution.node for one in of_jobs)
    assert {one.use.consumer_kind for one in month.foreign if one.use.owner_kind != "Job"} >= {"Pod"}
    assert [one.flavor for one in month.layouts] == ["a100"]
    assert len(month.holds) > 500


def test_nights_and_weekends_are_idle(month):
    held = defaultdict[str, float](float)
    hours = Counter[str]()
    for number in range(30 * 24):
        at = month.start + number * HOUR + timedelta(minutes=30)
        part = "weekend" if at.weekday() >= 5 else "day" if 9 <= at.hour < 18 else "night"
        hours[part] += 1
        held[part] += float(
            sum(
                one.begin.attribution.gpu_share * one.begin.quantity
                for one in month.holds
                if one.begin.at <= at < one.end
            )
        )
    mean = {part: held[part] / hours[part] for part in hours}
    assert mean["weekend"] < 0.7 * mean["day"]
    assert mean["night"] < mean["day"]


def test_pods_of_allocations_fit_their_holds_and_some_holds_are_left_without(month):
    held = {one.id: one for one in month.allocations}
    with_pods = defaultdict[UUID, timedelta](timedelta)
    ended: dict[UUID, datetime] = {}
    for row in HoldUse.objects.exclude(holder_id=hold_use.NO_HOLD).order_by("start"):
        assert row.end is not None
        hold = held[row.holder_id]
        assert max(hold.held_at, ended.get(row.holder_id, row.start)) <= row.start < row.end <= hold.ended_at
        ended[row.holder_id] = row.end
        with_pods[row.holder_id] += row.end - row.start
    shares = [with_pods[one.id] / (one.ended_at - one.held_at) for one in month.allocations]
    assert 0 in shares and any(0 < share < 0.7 for share in shares)
    assert sum(share > 0.9 for share in shares) > 0.7 * len(shares)


def test_savings_tell_of_the_nights_without_pods(week):
    window = f"{week.start:%FT%TZ},{week.until:%FT%TZ}"
    found = client(User.objects.get(username="auditor")).get(f"/api/v1/costs/savings?window={window}").json()
    assert "quiet_hours" in {one["kind"] for one in found["results"]}


def test_each_row_before_what_is_recorded_is_marked_and_none_after_it(month):
    models: tuple[Any, ...] = (CapacityInterval, UsageInterval, NodeInterval)
    for model in models:
        rows = list(model.objects.filter(source_start__kind=simulated.KIND))
        assert rows and all(row.source_end == row.source_start for row in rows)
        recorded = model.objects.exclude(source_start__kind=simulated.KIND)
        assert min((row.start for row in recorded), default=STARTED) == STARTED
    assert all(uid.startswith(simulated.UID_PREFIX) for uid in ForeignUse.objects.values_list("uid", flat=True))
    assert simulated.first_evidence()[LOCAL]["until"] == STARTED.isoformat()


def test_the_history_ends_where_the_recorded_ledger_begins(month):
    assert max(one.end for one in (*month.holds, *month.foreign)) == STARTED
    spans = defaultdict(list)
    for row in CapacityInterval.objects.order_by("start", "end"):
        spans[row.unit].append((row.start, row.end))
    for of_unit in spans.values():
        assert all(before[1] == after[0] for before, after in pairwise(of_unit))
        assert of_unit[0][0] < STARTED and of_unit[-1][1] is None
    joined = dict.fromkeys({unit.node for unit in spans}, STARTED)
    assert dict(NodeInterval.objects.exclude(end=None).values_list("node", "end")) == joined


def test_every_hour_is_rolled_up_and_balanced(week):
    hours = {week.start + number * HOUR for number in range(8 * 24 + 16)}
    assert dict(BalanceProof.objects.values_list("hour", "balanced")) == dict.fromkeys(hours, True)
    assert set(RolledUpHour.objects.values_list("hour", flat=True)) == hours
    assert set(DirtyHour.objects.values_list("hour", flat=True)) <= {STARTED.replace(minute=0)}
    total = sum(BalanceProof.objects.values_list("capacity_gpu_hours", flat=True))
    expected = simulated_sums.capacity_hours(week, week.start, STARTED.replace(minute=0))
    assert abs(Fraction(total) - expected) < Fraction(1, 1000)


def test_costs_are_the_sums_of_the_history_itself(week):
    window = f"{week.start:%FT%TZ},{week.until:%FT%TZ}"
    api = client(User.objects.get(username="auditor"))
    for key in ("team", "project", "member", "offering", "flavor"):
        found = api.get(f"/api/v1/costs?window={window}&aggregate={key}&idle=hide").json()
        expected = simulated_sums.held_by(week, key)
        assert {row["name"] for row in found["results"]} == expected.keys()
        for row in found["results"]:
            assert abs(Fraction(row["gpu_hours"]) - expected[row["name"]].gpu_hours) <= Fraction(1, 10**6)
            assert abs(Fraction(row["cost"]) - expected[row["name"]].cost) <= Fraction(1, 10**4)
        assert found["total"] == money.text(sum(one.cost for one in expected.values()))
        assert found["simulated_until"] == f"{STARTED:%FT%TZ}"


def test_writing_it_twice_changes_nothing(week):
    before = contents(*LEDGER, *ROLLUPS)
    assert writer.write(LOCAL, 8) is None
    assert writer.write(LOCAL, 30) is None
    assert writer.complete(LOCAL) == 0
    assert contents(*LEDGER, *ROLLUPS) == before


def test_what_an_interrupted_run_left_is_completed():
    writer.write(LOCAL, 1)
    assert writer.complete(LOCAL) == 24 + 16


def test_no_team_holds_more_than_its_quota(month):
    limits = Limit.objects.exclude(pool=None).values_list("team__slug", "pool__key", "nominal")
    nominal = {(team, pool): units for team, pool, units in limits}
    pools = dict(Pool.objects.values_list("key", "resources"))
    offerings = {one.key: one for one in Offering.objects.select_related("pool")}
    changes = defaultdict[tuple[str, str, str], list[tuple[datetime, int]]](list)
    for one in month.holds:
        held, offering = one.begin.attribution, offerings[one.begin.attribution.offering]
        for resource, amount in offering.requests.items():
            account = changes[held.team, offering.pool.key, resource]
            account += [(one.end, -amount * one.begin.quantity), (one.begin.at, amount * one.begin.quantity)]
    for (team, pool, resource), steps in changes.items():
        running = most = 0
        for _, amount in sorted(steps):
            running += amount
            most = max(most, running)
        assert 0 < most <= nominal[team, pool] * pools[pool][resource]


def test_a_seed_gives_one_history():
    found = world.read(LOCAL, 10)
    evidence = {"kind": "simulated"}
    assert generator.generate(found, 1, evidence) == generator.generate(found, 1, evidence)
    assert generator.generate(found, 1, evidence).holds != generator.generate(found, 2, evidence).holds


@pytest.mark.parametrize("days", [1, 2, 90])
def test_histories_of_any_length_fit_the_ledger_and_take_as_many_statements(days, django_assert_max_num_queries):
    with django_assert_max_num_queries(80):
        found = writer.write(LOCAL, days, seed=days)
    assert found and found.holds and found.capacity


def test_prices_of_the_present_stay_as_they_are():
    def present():
        return {name: rates[-1].per_gpu_hour for name, rates in by_flavor().items()}

    before = present()
    month = writer.write(LOCAL, 30)
    assert month and present() == before
    assert {one.flavor for one in month.prices} == {"h100"}
    lower, again = (one.price.per_gpu_hour for one in month.prices)
    assert (lower, again) == (Decimal("2.88"), Decimal("3.20"))


def test_costs_say_that_history_is_simulated_as_long_as_the_window_has_some(month):
    browser = browser_of(User.objects.get(username="vision-lead"))
    sentence = "Some of this history is simulated"
    assert sentence in text(browser.get("/costs?window=today"))
    later = f"{STARTED:%FT%TZ},{NOW:%FT%TZ}"
    assert sentence not in text(browser.get(f"/costs?window={later}"))
    api = client(User.objects.get(username="vision-lead"))
    assert api.get(f"/api/v1/costs?window={later}").json()["simulated_until"] is None


@pytest.mark.parametrize(
    "path",
    [
        *("/costs?window=30d", "/costs/savings?window=30d", "/costs/assets?window=7d", "/costs/fleet", "/costs/proof"),
        *("/costs/forecast?window=month", "/costs/mine", "/teams/vision/costs", "/projects/vision-train/costs"),
    ],
)
def test_every_page_with_simulated_money_says_so_once(month, path):
    page = text(browser_of(User.objects.get(username="operator")).get(path))
    assert page.count("Some of this history is simulated") == 1


def test_costs_say_nothing_of_it_without_one():
    browser = browser_of(User.objects.get(username="vision-lead"))
    assert "simulated" not in text(browser.get("/costs?window=today"))


def test_the_command_writes_a_history_once(capsys):
    call_command("simulate_history", "--days=1d")
    assert "40 hours rolled up and proved" in capsys.readouterr().out
    call_command("simulate_history", "--days=1d")
    out = capsys.readouterr().out
    assert "it stays as it is" in out and "0 hours rolled up and proved" in out


def test_allocations_have_the_intervals_of_the_history_and_a_timeline():
    call_command("simulate_history", "--days=2d")
    rows = {row.pk: row for row in Allocation.objects.select_related("project", "offering", "requested_by")}
    held = UsageInterval.objects.exclude(member="")
    assert rows.keys() == set(held.values_list("holder_id", flat=True))
    for one in held:
        row = rows[one.holder_id]
        assert (row.project.slug, row.offering.key, row.requested_by.username) == (
            one.project,
            one.offering,
            one.member,
        )
        assert (row.held_at, row.ended_at, row.labels) == (one.start, one.end, one.labels)
    api = client(User.objects.get(username="operator"))
    pk = next(iter(rows))
    steps = api.get(f"/api/v1/allocations/{pk}/events").json()["results"]
    assert [step["to_phase"] for step in steps] == ["queued", "active", "ended"]
    assert all("Simulated" in step["message"] for step in steps[:2])
    assert api.get(f"/api/v1/allocations/{pk}").json()["phase"] == "ended"
    assert browser_of(User.objects.get(username="operator")).get(f"/allocations/{pk}").status_code == 200
    assert api.get(f"/api/v1/costs/allocations/{pk}").json()["results"][0]["evidence"]["start"]["kind"] == "simulated"


def test_the_command_refuses_a_database_that_had_other_people_before():
    User.objects.create(pk=User.objects.earliest("pk").pk - 1, username="ada")
    with pytest.raises(CommandError, match="not the demo's database"):
        call_command("simulate_history", "--days=1d")
    assert not simulated.first_evidence()


def test_there_is_no_history_before_a_fleet_is_recorded():
    with pytest.raises(NothingRecorded):
        world.read("elsewhere", 1)
