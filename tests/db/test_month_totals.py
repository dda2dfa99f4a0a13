"""Totals of months: when they are added up, when they are read, and that sums are the same to the last digit."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from django.db import transaction

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import capacity_services, fleet_costs, ledger, rollups, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import CapacityCostMonth, NodeCost
from quotas.costs.node_terms import Term
from quotas.costs.rating import RatedUsage
from quotas.metering.hours import DAY, HOUR, hours_between
from quotas.metering.models import DayTotal, DirtyHour, MonthTotal, OwnedIdleMonth, RolledUpHour
from quotas.metering.parts import MICROSECONDS_PER_HOUR
from quotas.metering.rolled_up import Detail
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.idle import sensing, set_quota
from tests.support.quotas import T0, used
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
JANUARY, FEBRUARY, MARCH = (datetime(2027, month, 1, tzinfo=UTC) for month in (1, 2, 3))
FIRST, LAST = FEBRUARY - DAY, MARCH + DAY
"""What random ledgers have: February, which has 28 days, and a day before and after it."""


@pytest.fixture(autouse=True)
def before_all_hours(db: None) -> Iterator[None]:
    """Run the test before the first hour, so that what it records marks none."""
    fleet()
    with clock.frozen(T0):
        yield


def count_as_rolled_up(start: datetime, end: datetime, cluster: str = LOCAL) -> None:
    hours = hours_between(start, end)
    RolledUpHour.objects.bulk_create(RolledUpHour(cluster_id=cluster, hour=one, rolled_up_at=T0) for one in hours)


def add_total(model: Any, start: datetime, gpu_hours: int, team: str = "vision", cluster: str = LOCAL) -> None:
    """Add a row of what ``used`` records, as if it had been rolled up."""
    names = {"flavor": "l40s", "offering": "l40s/whole", "department": "research", "project": "vision-train"}
    rated = {"price": Decimal("1.1"), "denominator": 1, "amount": gpu_hours * MICROSECONDS_PER_HOUR}
    model.objects.create(cluster_id=cluster, start=start, category="held", team=team, **names, **rated)


def months() -> dict[tuple[datetime, str], Fraction]:
    """Return the GPU-hours of the totals by month and team."""
    found: dict[tuple[datetime, str], Fraction] = defaultdict(Fraction)
    for row in MonthTotal.objects.all():
        found[row.start, row.team] += Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
    return dict(found)


def test_a_month_is_added_up_from_its_days_once_all_its_hours_are_rolled_up() -> None:
    count_as_rolled_up(FEBRUARY, MARCH - HOUR)
    for day, gpu_hours, team in ((0, 5, "vision"), (9, 2, "language"), (25, 3, "vision")):
        add_total(DayTotal, FEBRUARY + day * DAY, gpu_hours, team)
    add_total(DayTotal, FEBRUARY - DAY, 100)
    add_total(DayTotal, MARCH, 100)
    rollups.roll_up(LOCAL, MARCH - DAY - HOUR, MARCH - HOUR)
    assert months() == {}
    used(MARCH - HOUR, MARCH)
    rollups.roll_up(LOCAL, MARCH - HOUR, MARCH + HOUR)
    assert months() == {(FEBRUARY, "vision"): 9, (FEBRUARY, "language"): 2}


def test_an_hour_that_is_rolled_up_late_replaces_its_month() -> None:
    count_as_rolled_up(FEBRUARY, MARCH)
    add_total(MonthTotal, FEBRUARY, 4)
    add_total(MonthTotal, JANUARY, 8)
    add_total(MonthTotal, FEBRUARY, 16, cluster=make_cluster("other").slug)
    add_total(DayTotal, FEBRUARY + 3 * DAY, 4)
    used(FEBRUARY + HOUR, FEBRUARY + 1.5 * HOUR, team="language")
    expected = {(JANUARY, "vision"): 8, (FEBRUARY, "vision"): 16 + 4, (FEBRUARY, "language"): Fraction(1, 2)}
    for _ in range(2):
        rollups.roll_up(LOCAL, FEBRUARY + HOUR, FEBRUARY + 2 * HOUR)
        assert months() == expected


def by_step(edges: Sequence[datetime], keys: Sequence[str] = ()) -> dict[Any, Fraction]:
    """Return the GPU-hours by the start of the step and, if any, keys."""
    sums = ledger.sums(edges, keys, {}, edges[-1])
    return {(one.window.start, *one.names) if keys else one.window.start: one.usage.gpu_hours for one in sums}


def test_a_year_is_read_from_the_totals_of_its_months_alone() -> None:
    starts = [JANUARY.replace(month=month) for month in range(1, 13)]
    edges = [*starts, JANUARY.replace(year=2028)]
    count_as_rolled_up(edges[0], edges[-1])
    for number, month in enumerate(starts, 1):
        add_total(MonthTotal, month, number)
    assert by_step(edges) == dict(zip(starts, range(1, 13), strict=True))
    assert by_step([edges[0], edges[-1]]) == {JANUARY: 78}
    assert by_step([edges[0] - DAY, edges[4], edges[-1] + DAY]) == {JANUARY - DAY: 10, edges[4]: 68}


@pytest.fixture
def totals() -> None:
    """Three months that count as rolled up; totals of days and months differ, so that it is seen which are read."""
    count_as_rolled_up(JANUARY, MARCH.replace(month=4))
    for month in (JANUARY, FEBRUARY, MARCH):
        add_total(MonthTotal, month, 100)
        for number in range(28):
            add_total(DayTotal, month + number * DAY, 1)


def test_a_month_that_a_step_cuts_is_read_from_its_days(totals: None) -> None:
    april, inside = MARCH.replace(month=4), FEBRUARY + 10 * DAY
    assert by_step([JANUARY, inside, april]) == {JANUARY: 110, inside: 118}
    assert by_step([JANUARY + DAY, FEBRUARY, MARCH]) == {JANUARY + DAY: 27, FEBRUARY: 100}
    assert by_step([JANUARY, april - HOUR]) == {JANUARY: 228}


def test_months_of_another_time_zone_are_read_from_days(totals: None) -> None:
    """Berlin is an hour ahead of UTC in winter, so its February ends within the last day of that of UTC."""
    begin, february, end = JANUARY - HOUR, FEBRUARY - HOUR, MARCH - HOUR
    assert by_step([begin, february, end]) == {begin: 28, february: 27}
    assert by_step([begin, end]) == {begin: 127}


def test_a_month_with_a_marked_hour_is_read_from_its_days_and_the_others_are_not(totals: None) -> None:
    DirtyHour.objects.create(cluster_id=LOCAL, hour=FEBRUARY + 5.25 * DAY)
    edges = [JANUARY, FEBRUARY, MARCH, MARCH.replace(month=4)]
    assert by_step(edges) == {JANUARY: 100, FEBRUARY: 27, MARCH: 100}
    assert by_step([edges[0], edges[-1]]) == {JANUARY: 227}


def test_a_month_is_not_read_before_it_has_ended(totals: None) -> None:
    [found] = ledger.sums([MARCH, MARCH.replace(month=4)], (), {}, MARCH + 30.5 * DAY)
    assert found.usage.gpu_hours == 28


def test_of_each_cluster_the_months_are_read_that_it_has_rolled_up(totals: None) -> None:
    other = make_cluster("other").slug
    count_as_rolled_up(JANUARY, MARCH - HOUR, other)
    for month in (JANUARY, FEBRUARY):
        add_total(MonthTotal, month, 1000, cluster=other)
        add_total(DayTotal, month, 7, cluster=other)
    edges = [JANUARY, FEBRUARY, MARCH]
    assert by_step(edges, ("cluster",)) == {
        (JANUARY, LOCAL): 100,
        (FEBRUARY, LOCAL): 100,
        (JANUARY, other): 1000,
        (FEBRUARY, other): 7,
    }


def random_moment(random: Random) -> datetime:
    if random.random() < 0.3:
        return FIRST + random.randrange(30 * 24) * HOUR
    return FIRST + timedelta(microseconds=random.randrange(30 * 24 * MICROSECONDS_PER_HOUR))


def use(random: Random, cluster: str) -> None:
    start, end = sorted(random_moment(random) for _ in range(2))
    team, department = random.choice([("lidar", "sensing"), ("radar", "sensing"), ("vision", "research")])
    share = Fraction(1, random.randrange(1, 8))
    flavor = random.choice(["l40s", "l40s", "unpriced"])
    end_or_none = random.choice([end, end, None])
    used(start, end_or_none, 1, cluster=cluster, team=team, department=department, gpu_share=share, flavor=flavor)


def roll_up(cluster: str, start: datetime, end: datetime) -> None:
    """Roll up a day at a time, as the command does."""
    while start < end:
        until = min(start + DAY, end)
        rollups.roll_up(cluster, start, until)
        start = until


Answers = list[dict[Any, RatedUsage]]


def answers(random: Random) -> Callable[[], Answers]:
    """Return a function that asks for the same windows whenever it is called."""
    windows = [
        [FEBRUARY, MARCH],
        [FIRST, FEBRUARY, MARCH, LAST],
        [FIRST, LAST],
        [FEBRUARY - HOUR, MARCH - HOUR],
        [FEBRUARY - timedelta(hours=5, minutes=45), MARCH - timedelta(hours=5, minutes=45)],
        *(sorted({random_moment(random) for _ in range(4)}) for _ in range(4)),
        *(sorted({FEBRUARY, MARCH, *(random_moment(random) for _ in range(2))}) for _ in range(4)),
    ]
    now = random.choice([LAST, MARCH, MARCH - timedelta(microseconds=1)])

    def ask() -> Answers:
        return [
            {(one.window, one.names): one.usage for one in ledger.sums(edges, keys, {}, now)}
            for edges in windows
            for keys in ((), ("cluster", "team"), ("offering", "project"), ("member",))
        ]

    return ask


def from_the_ledger(ask: Callable[[], Answers]) -> Answers:
    """Return the answers while every hour is marked, so that nothing of the roll-ups is read."""
    with transaction.atomic():
        hours = RolledUpHour.objects.order_by().values_list("cluster", "hour")
        DirtyHour.objects.bulk_create(DirtyHour(cluster_id=cluster, hour=hour) for cluster, hour in hours)
        found = ask()
        transaction.set_rollback(True)
    return found


@pytest.mark.parametrize("seed", range(size(1, 2)))
def test_costs_are_the_same_to_the_last_digit_whatever_months_are_rolled_up(seed: int) -> None:
    random, other = Random(seed), make_cluster("other").slug
    l40s = Flavor.objects.get(name="l40s")
    services.set_price(SYSTEM, l40s.name, "1.3377", "EUR", random_moment(random), "test")
    for _ in range(12):
        use(random, LOCAL)
        use(random, other)
    ask = answers(random)
    expected = ask()
    assert all(expected)
    hole = FEBRUARY + random.randrange(28 * 24) * HOUR
    roll_up(LOCAL, FIRST, hole)
    roll_up(LOCAL, hole + HOUR, LAST)
    roll_up(other, FEBRUARY, FEBRUARY + 20 * DAY)
    assert ask() == expected
    assert not MonthTotal.objects.exists()
    rollups.roll_up(LOCAL, hole, hole + HOUR)
    assert set(MonthTotal.objects.values_list("cluster", "start")) == {(LOCAL, FEBRUARY)}
    assert ask() == expected
    roll_up(other, FEBRUARY + 20 * DAY, MARCH)
    assert set(MonthTotal.objects.values_list("cluster", "start")) == {(LOCAL, FEBRUARY), (other, FEBRUARY)}
    assert ask() == expected
    late = MARCH - random.randrange(3, 12) * HOUR
    with clock.frozen(MARCH + 2 * HOUR):
        used(late, late + 2.5 * HOUR, 3)
    marked = rollups.dirty_hours(LOCAL, LAST)
    assert marked
    changed = ask()
    assert changed != expected
    assert changed == from_the_ledger(ask)
    for hour in marked:
        rollups.roll_up(LOCAL, hour, hour + HOUR)
    assert not DirtyHour.objects.exists()
    assert ask() == changed


def fleet_totals(
    steps: Sequence[datetime], edges: Sequence[datetime]
) -> tuple[dict[Any, Fraction], dict[Any, tuple[Fraction, Fraction]]]:
    """Return the GPU-hours of the fleet by owner, and what capacity cost, read between the steps."""
    read = fleet_costs.read(steps, LAST, Detail.OWNER)
    assert read is not None
    found = read.by_steps(steps, edges)
    hours: dict[Any, Fraction] = defaultdict(Fraction)
    for one in found.parts:
        hours[one._replace(gpu_hours=Fraction(0))] += one.gpu_hours
    capacity: dict[Any, tuple[Fraction, Fraction]] = {}
    for place in found.capacity:
        before = capacity.get((place.place, place.part), (Fraction(0), Fraction(0)))
        capacity[place.place, place.part] = before[0] + place.hours, before[1] + place.cost
    return {key: amount for key, amount in hours.items() if amount}, capacity


@pytest.fixture
def rolled_up_fleet() -> None:
    """A fleet of which quotas, prices and costs of nodes change within the month, all rolled up."""
    teams, begin, l40s = sensing(), (FIRST - T0) / HOUR, Flavor.objects.get(name="l40s")
    record({**RESOURCES, **GPUS}, begin)
    set_quota(begin + 99.7, teams["lidar"], 1, borrowing=4)
    for at, amount in ((0, "2.5"), (250, "1.75")):
        with clock.frozen(FIRST + at * HOUR):
            subject = CostSubject(l40s, Term.ON_DEMAND)
            capacity_services.set_node_cost(SYSTEM, subject, amount, NodeCost.Per.GPU, "", "EUR", clock.now())
            services.set_price(SYSTEM, l40s.name, amount, "EUR", clock.now() + 10.1 * HOUR, "test")
    used(FIRST + 7.7 * HOUR, FEBRUARY + 300.3 * HOUR, 2, team="lidar", department="sensing")
    used(FEBRUARY + 100.1 * HOUR, None, 1, team="radar", department="sensing")
    hold_gpu("gpu-0", begin + 40.4, begin + 400.1)
    roll_up(LOCAL, FIRST, LAST)


def test_the_fleet_is_the_same_to_the_last_digit_from_months_as_from_days(rolled_up_fleet: None) -> None:
    inside = [FEBRUARY + 9 * DAY]
    for edges in ([FEBRUARY, MARCH], [FIRST, FEBRUARY, MARCH, LAST], [FIRST, LAST]):
        from_days = fleet_totals(sorted([*edges, *inside]), edges)
        assert all(from_days)
        assert fleet_totals(edges, edges) == from_days


def test_the_fleet_is_read_from_the_totals_of_the_month(rolled_up_fleet: None) -> None:
    edges = [FEBRUARY, MARCH]
    hours, capacity = fleet_totals(edges, edges)
    MonthTotal.objects.filter(category="held").delete()
    OwnedIdleMonth.objects.filter(team="lidar").delete()
    CapacityCostMonth.objects.filter(flavor="h100").delete()
    fewer_hours, less_capacity = fleet_totals(edges, edges)
    gone = {(key.category.value, key.team) for key in hours.keys() - fewer_hours.keys()}
    assert gone == {("held", ""), ("idle", "lidar")}
    assert {place[2] for place, _ in capacity.keys() - less_capacity.keys()} == {"h100"}
