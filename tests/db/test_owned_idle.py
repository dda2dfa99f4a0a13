"""Whose unused quota idle GPUs are, in costs: from the ledger, rolled up, and in the example of the guide."""

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team
from quotas.costs import lending, rollups, services
from quotas.costs.models import Price
from quotas.costs.rating import Window
from quotas.limits import names
from quotas.limits.lending import debts
from quotas.limits.models import QuotaChange
from quotas.limits.tree import Quota
from quotas.metering.models import DirtyHour, HourTotal, OwnedIdleDay, OwnedIdleHour
from quotas.metering.units import FoundUnit, Unit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.idle import costs, hold, sensing, set_quota
from tests.support.quotas import hour, used
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
GUIDE = Path(__file__).parents[2] / "docs" / "concepts" / "lending.md"
NEXT_NODE = Unit("l40s-2", "resource", "nvidia.com/gpu")


@pytest.fixture
def teams() -> dict[str, Team]:
    """Create three teams with quotas of eight l40s, which cost 1.10 an hour."""
    fleet()
    record(RESOURCES, 0)
    return sensing()


def roll_up(start: int, end: int) -> None:
    rollups.roll_up(LOCAL, hour(start), hour(end))


def story(teams: dict[str, Team]) -> None:
    """Record the six hours of the guide."""
    hold("radar", 2, 1, 4)
    hold("radar", 2, 1, 3)
    hold("sonar", 2, 2, 3)
    hold("sonar", 1, 2, 4)
    hold("lidar", 4, 3, 4)
    set_quota(4, teams["sonar"], 6, borrowing=4)
    set_quota(5, teams["sonar"], 0, borrowing=4)


def guide_rows() -> list[list[str]]:
    """Return the cells of the guide's table of what each hour costs."""
    text = GUIDE.read_text(encoding="utf-8").partition("<!-- idle: begin -->")[2].partition("<!-- idle: end -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]


def test_the_example_of_the_guide_costs_what_it_says(teams: dict[str, Team]):
    story(teams)
    rows = guide_rows()
    assert len(rows) == 6
    for number, (_, *cells) in enumerate(rows):
        found = costs(number, number + 1)
        for name, cell in zip(("lidar", "radar", "sonar", "__idle__"), cells, strict=True):
            cost, idle = found.get(name, ("0.0000", "0"))
            expected = cell.split(" + ")
            assert [Decimal(cost or 0), Decimal(idle or 0)] == [Decimal(one) for one in ["0", *expected][-2:]], cell
        assert sum((Decimal(one or 0) for row in found.values() for one in row), Decimal(0)) == Decimal("8.80")


def test_what_is_lent_is_paid_by_the_borrower_alone(teams: dict[str, Team]):
    """Radar borrows 2, of lidar, which may lend 3 of its 4, and of sonar's 2 in proportion."""
    hold("radar", 4, 0, 1)
    assert costs(0, 1) == {"radar": ("4.4000", "0"), "lidar": ("0.0000", "3.0800"), "sonar": ("0.0000", "1.3200")}


def test_a_departments_own_quota_is_in_its_row_and_in_no_teams(teams: dict[str, Team]):
    set_quota(-1, teams["lidar"].department, 3)
    set_quota(-1, teams["lidar"], 1, borrowing=4)
    found = costs(0, 1, "department", "team")
    assert found["sensing/__idle__"] == ("0.0000", "3.3000")
    assert found["sensing/lidar"] == ("0.0000", "1.1000")
    assert costs(0, 1, "department") == {"sensing": ("0.0000", "8.8000")}


def test_what_is_nobodys_quota_is_the_platforms(teams: dict[str, Team]):
    set_quota(0, teams["lidar"], 1)
    assert costs(0, 1, "department")["__idle__"] == ("0.0000", "3.3000")


def test_gpus_that_fail_are_the_platforms_and_idle_is_scaled_down_to_what_is_left(teams: dict[str, Team]):
    record({unit: FoundUnit(4, 0, "node_not_ready") for unit in RESOURCES if unit.node == "l40s-0"}, 0)
    assert costs(0, 1) == {
        "__idle__": ("0.0000", "0"),
        "lidar": ("0.0000", "2.2000"),
        "radar": ("0.0000", "1.1000"),
        "sonar": ("0.0000", "1.1000"),
    }


def test_a_team_that_moves_keeps_its_past_idle_with_its_department(teams: dict[str, Team]):
    with clock.frozen(hour(1)):
        other = tenants.create_department(SYSTEM, "product", "Product")
        structure.move_team(SYSTEM, teams["lidar"], other)
    assert costs(0, 2, "department") == {"sensing": ("0.0000", "13.2000"), "product": ("0.0000", "4.4000")}


def test_before_quotas_were_recorded_all_idle_is_the_platforms(teams: dict[str, Team]):
    record({NEXT_NODE: FoundUnit(4, 4)}, -3)
    assert costs(-3, -1, "department")["__idle__"] == ("0.0000", "8.8000")


def test_a_price_that_changes_counts_from_then_on(teams: dict[str, Team]):
    Price.objects.all().delete()
    for amount, at in (("1", 0.0), ("3", 0.5)):
        with clock.frozen(hour(at)):
            services.set_price(SYSTEM, "l40s", amount, "EUR", hour(at), "test")
    assert costs(0, 1)["lidar"] == ("0.0000", "8.0000")


def test_without_a_price_idle_has_no_cost(teams: dict[str, Team]):
    Price.objects.all().delete()
    assert costs(0, 1)["lidar"] == ("0.0000", None)


def test_named_gpus_are_of_the_pool_of_their_flavor(teams: dict[str, Team]):
    record(GPUS, 0)
    set_quota(0, teams["lidar"], 2, "h100/gpu")
    hold_gpu("gpu-0", 0, 0.5, team="lidar", department="sensing")
    assert costs(0, 1, "flavor", "team")["h100/lidar"] == ("1.6000", "4.8000")


def test_a_filter_keeps_the_idle_of_what_it_names(teams: dict[str, Team]):
    assert set(costs(0, 1, where={"team": ["lidar"]})) == {"lidar"}
    assert set(costs(0, 1, where={"department": ["sensing"]})) == {"lidar", "radar", "sonar"}
    assert costs(0, 1, where={"project": ["vision-train"]}) == {}


def test_other_keys_have_it_in_a_row_of_its_own(teams: dict[str, Team]):
    assert costs(0, 1, "team", "project")["lidar/__idle__"] == ("0.0000", "4.4000")


def random_ledger(seed: int, teams: dict[str, Team]) -> list[tuple[str, int, float, float]]:
    """Record a day of random holds, quotas and moves at whole minutes; return the holds."""
    choose = Random(seed)
    held = []
    for _ in range(25):
        start = choose.randrange(0, 24 * 60) / 60
        one = (choose.choice(sorted(teams)), choose.randint(1, 3), start, start + choose.randrange(1, 600) / 60)
        held.append(one)
        hold(*one)
    for _ in range(6):
        at = choose.randrange(0, 24 * 60) / 60
        limits: dict[str, Any] = {"borrowing": choose.choice([None, 2]), "lending": choose.choice([None, 1])}
        set_quota(at, teams[choose.choice(sorted(teams))], choose.randint(0, 6), **limits)
    return held


def moments(held: list[tuple[str, int, float, float]], until: int) -> dict[str, Fraction]:
    """Return the idle GPU-hours of each owner, added up minute by minute; "" is the platform."""
    parents = {"dept-sensing": None, **{f"team-{team}": "dept-sensing" for team in ("lidar", "radar", "sonar")}}
    found: dict[str, Fraction] = defaultdict(Fraction)
    for minute in range(until * 60):
        now = hour(0) + timedelta(minutes=minute)
        quotas = {
            f"team-{one.team}": Quota(one.nominal, one.borrowing, one.lending)
            for one in QuotaChange.objects.filter(at__lte=now).order_by("at", "id").select_related("team")
        }
        usage: dict[str, Fraction] = defaultdict(Fraction)
        for team, count, start, end in held:
            if round(start * 60) <= minute < round(end * 60):
                usage[f"team-{team}"] += count
        owed = debts(parents, quotas, usage)
        claims = {
            name: max(Fraction(0), quota.nominal - usage[name]) - sum(one.amount for one in owed if one.lender == name)
            for name, quota in quotas.items()
        }
        idle = Fraction(max(0, 8 - sum(usage.values())))
        total = sum(claims.values())
        for name, claim in claims.items():
            found[name.removeprefix("team-")] += min(claim, claim * idle / total if total else claim) / 60
        found["__idle__"] += max(Fraction(0), idle - total) / 60
    return found


@pytest.mark.parametrize("seed", range(size(1, 3)))
def test_random_days_are_what_their_minutes_add_up_to(teams: dict[str, Team], seed: int):
    expected = moments(random_ledger(seed, teams), 24)
    found = costs(0, 24)
    for name in ("lidar", "radar", "sonar", "__idle__"):
        idle = Decimal(found[name][1] or 0) if name in found else 0
        assert abs(Fraction(idle) - expected[name] * Fraction(11, 10)) <= Fraction(1, 10_000)


@pytest.mark.parametrize("seed", range(size(1, 3)))
def test_idle_is_owned_alike_whatever_is_rolled_up(teams: dict[str, Team], seed: int):
    random_ledger(seed, teams)
    queries: list[Any] = [("team",), ("department", "flavor"), ("cluster",), ("team", "project")]
    before = [(costs(0, 24, *keys), costs(1.3, 22.7, *keys)) for keys in queries]
    for start, end in ((2, 5), (0, 24)):
        roll_up(start, end)
        DirtyHour.objects.all().delete()
        assert [(costs(0, 24, *keys), costs(1.3, 22.7, *keys)) for keys in queries] == before
    assert OwnedIdleDay.objects.exists()


def test_of_no_hour_more_is_owned_than_is_idle(teams: dict[str, Team]):
    random_ledger(7, teams)
    roll_up(0, 24)
    idle: dict[Any, Fraction] = defaultdict(Fraction)
    for row in HourTotal.objects.filter(category="idle"):
        idle[row.start] += Fraction(row.amount) / Fraction(row.denominator)
    owned: dict[Any, Fraction] = defaultdict(Fraction)
    for one in OwnedIdleHour.objects.all():
        assert one.amount > 0
        owned[one.start] += Fraction(one.amount) / 720_720
    assert owned
    assert all(amount <= idle[start] for start, amount in owned.items())


def test_a_later_change_of_quotas_changes_no_hour_before_it(teams: dict[str, Team]):
    roll_up(0, 3)
    before = costs(0, 3)
    set_quota(3, teams["lidar"], 1)
    assert not DirtyHour.objects.filter(hour__lt=hour(3)).exists()
    roll_up(0, 3)
    assert costs(0, 3) == before


def test_a_late_end_changes_what_was_idle_then(teams: dict[str, Team]):
    roll_up(0, 3)
    used(hour(1), hour(2), 4, team="lidar", department="sensing")
    assert costs(0, 3)["lidar"] == ("4.4000", "8.8000")


def test_what_was_borrowed_in_the_past_is_by_the_quotas_of_that_time(teams: dict[str, Team]):
    """Radar's quota of 4 begins an hour after its use of 2; before, it borrows of lidar and sonar."""
    set_quota(-1, teams["radar"], 0, borrowing=4)
    hold("radar", 2, 0, 2)
    set_quota(1, teams["radar"], 4, borrowing=4)
    [owed] = lending.borrowed(Window(hour(0), hour(3)), hour(3)).values()
    assert sum((one.amount for one in owed), Fraction(0)) == 2
    assert {one.borrower for one in owed} == {names.cluster_queue("radar")}
    assert all(one.lender for one in owed)
    assert not lending.borrowed(Window(hour(1), hour(3)), hour(3))
