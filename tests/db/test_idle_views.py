"""Views of idle cost: OpenCost's example, and that no view changes a sum."""

from datetime import date
from decimal import Decimal
from itertools import product
from random import sample
from typing import Any
from uuid import uuid4

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team
from quotas.catalog.models import Flavor
from quotas.costs import bills, capacity_services, rollups, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.cost_rows import CostRow
from quotas.costs.models import CapacityCostHour, NodeCost, Price
from quotas.costs.node_terms import Term
from quotas.costs.questions import HIDDEN, IdleBy, IdleMode, IdleSplit, IdleView
from quotas.costs.steps import Step
from quotas.metering import services as metering
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.idle import OWNER, cost_rows, costs, hold, sensing, set_quota
from tests.support.people import person
from tests.support.quotas import attribution, hour, used
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
SEPARATE = IdleView()
SHARED = [IdleView(IdleMode.SHARE, by, split) for by, split in product(IdleBy, IdleSplit)]
VIEWS = [SEPARATE, OWNER, *SHARED]


def share(by: IdleBy = IdleBy.CLUSTER, split: IdleSplit = IdleSplit.WEIGHTED) -> IdleView:
    return IdleView(IdleMode.SHARE, by, split)


def idle(view: IdleView, *keys: str, start: float = 0, end: float = 1, **options: Any) -> dict[str, str | None]:
    """Return the idle cost of the rows that have any."""
    found = costs(start, end, *keys, idle=view, **options)
    return {name: amount for name, (_, amount) in found.items() if amount != "0"}


@pytest.fixture
def opencost(db: None) -> None:
    """Record OpenCost's example: [(w1, w2, w3, w4, -, -), (w5, -, -, -, -, -)], an hour at 1 for each GPU."""
    fleet(prices={"h100": "1"})
    record({Unit(f"h100-{node}", GPU, f"gpu-{n}"): FoundUnit(1, 1) for node in range(2) for n in range(6)}, 0)
    for worker, (node, gpu) in enumerate([(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)], start=1):
        values = {"offering": "h100/whole", "flavor": "h100", "node": f"h100-{node}", "member": f"w{worker}"}
        slot = f"{LOCAL}/h100-{node}/gpu-{gpu}"
        key = metering.open_interval(uuid4(), uuid4(), slot, hour(0), attribution(**values), 1, SEEN).key
        metering.close_interval(key, hour(1), SEEN)


@pytest.mark.usefixtures("opencost")
@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_the_worked_example_of_opencost(is_rolled_up: bool):
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(1))
    assert idle(SEPARATE, "member") == {"__idle__": "7.0000"}
    assert idle(share(IdleBy.NODE), "member") == {**{f"w{n}": "0.5000" for n in range(1, 5)}, "w5": "5.0000"}
    assert idle(share(), "member") == {f"w{n}": "1.4000" for n in range(1, 6)}


@pytest.fixture
def teams(db: None) -> dict[str, Team]:
    """Create three teams, eight l40s of which lidar holds 3 and radar 1, and two h100 of which radar holds one."""
    fleet()
    record({**RESOURCES, **GPUS}, 0)
    hold("lidar", 3, 0, 1)
    hold("radar", 1, 0, 1)
    hold_gpu("gpu-0", 0, 1, team="radar", department="sensing")
    return sensing()


def test_idle_is_shared_in_proportion_to_cost_or_evenly(teams: dict[str, Team]):
    """By flavor 4 l40s are idle, 4.40, and an h100, 3.20."""
    assert idle(share(IdleBy.FLAVOR), "team") == {"lidar": "3.3000", "radar": "4.3000"}
    assert idle(share(IdleBy.FLAVOR, IdleSplit.EVEN), "team") == {"lidar": "2.2000", "radar": "5.4000"}
    assert idle(share(IdleBy.CLUSTER, IdleSplit.EVEN), "team") == {"lidar": "3.8000", "radar": "3.8000"}
    # 7.60 is idle; lidar pays 3.30 of 7.60.
    assert idle(share(), "team") == {"lidar": "3.3000", "radar": "4.3000"}


def test_without_names_of_gpus_a_node_is_the_flavor(teams: dict[str, Team]):
    assert idle(share(IdleBy.NODE), "team") == idle(share(IdleBy.FLAVOR), "team")


def test_evenly_is_between_the_rows_of_the_answer(teams: dict[str, Team]):
    hold("lidar", 1, 0, 1, project="lidar-dev", member="ben")
    even = share(IdleBy.FLAVOR, IdleSplit.EVEN)
    assert idle(even, "team", where={"flavor": ["l40s"]}) == {"lidar": "1.6500", "radar": "1.6500"}
    assert set(idle(even, "member", where={"flavor": ["l40s"]}).values()) == {"1.6500"}


def test_a_filter_leaves_each_row_its_share(teams: dict[str, Team]):
    view = share(IdleBy.FLAVOR)
    assert idle(view, "team", where={"team": ["lidar"]}) == {"lidar": "3.3000"}
    assert idle(view, "kind", where={"team": ["lidar"]}) == {"whole": "3.3000"}


def test_what_is_idle_where_nobody_held_anything_stays_apart(teams: dict[str, Team]):
    assert idle(share(), "team", start=1, end=2) == {"__idle__": "15.2000"}


def test_idle_without_a_price_is_shared_without_cost(teams: dict[str, Team]):
    Price.objects.filter(flavor__name="h100").delete()
    assert idle(share(IdleBy.FLAVOR), "flavor", "team") == {
        "l40s/lidar": "3.3000",
        "l40s/radar": "1.1000",
        "h100/radar": None,
    }


def test_hidden_is_without_it(teams: dict[str, Team]):
    assert idle(HIDDEN, "team") == {}


KEYS = [
    ("team",),
    ("flavor",),
    ("cluster",),
    ("department", "flavor"),
    ("project",),
    ("member", "node"),
    ("allocation",),
]
QUESTIONS = list(product(KEYS, VIEWS))


def sums(view: IdleView, keys: tuple[str, ...], **options: Any) -> tuple[Decimal, Decimal]:
    rows = cost_rows(0, 30, *keys, idle=view, **options)
    held, idle_costs = zip(*map(_amounts, rows), strict=True)
    return sum(map(Decimal, held), Decimal(0)), sum(map(Decimal, idle_costs), Decimal(0))


def _amounts(row: CostRow) -> tuple[str, str]:
    assert row.cost is not None
    assert row.idle_cost is not None
    return row.cost, row.idle_cost


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_every_view_adds_up_to_the_same_to_the_last_digit(teams: dict[str, Team], is_rolled_up: bool):
    with clock.frozen(hour(5.7)):
        services.set_price(SYSTEM, "l40s", "1.3377", "EUR", hour(7.31), "test")
    for number, team in enumerate(teams):
        hold(team, number + 1, 1.37 + number, 20.113 + number * 2.71)
        set_quota(4.21 + number, teams[team], 5 - number, borrowing=2)
    used(hour(2.7), hour(29.9), 1)
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(26))
    expected = sums(SEPARATE, ("team",))
    assert all(expected)
    for keys, view in sample(QUESTIONS, size(20, len(QUESTIONS))):
        assert sums(view, keys) == expected, (keys, view)
        assert sums(view, keys, step=Step.DAY) == expected, (keys, view)
    assert sums(HIDDEN, ("team",)) == (expected[0], Decimal(0))


BEYOND = ("price_variance", "node_rest", "idle_adjustment", "idle_shared_cost", "adjustment", "shared_cost")


def beyond(view: IdleView, keys: tuple[str, ...]) -> dict[str, list[str | None]]:
    """Return what rows have beyond the price of GPUs, without those that have nothing."""
    rows = cost_rows(0, 4, *keys, idle=view)
    found = {row.name: [getattr(row, name) for name in BEYOND] for row in rows}
    return {name: amounts for name, amounts in found.items() if amounts != ["0"] * len(BEYOND)}


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_what_nodes_and_fixed_costs_add_is_in_the_same_rows_in_every_view(teams: dict[str, Team], is_rolled_up: bool):
    l40s = Flavor.objects.get(name="l40s")
    with clock.frozen(hour(0)):
        subject = CostSubject(l40s, Term.ON_DEMAND)
        capacity_services.set_node_cost(SYSTEM, subject, "9", NodeCost.Per.NODE, "", "EUR", hour(0))
        bills.set_shared_cost(person(platform_role="operator"), "network", date(2026, 11, 1), "720", "weighted")
    set_quota(0, teams["lidar"], 8)
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(3))
    expected = {keys: beyond(SEPARATE, keys) for keys in KEYS}
    assert all(expected.values())
    for keys, view in sample(QUESTIONS, size(20, len(QUESTIONS))):
        assert beyond(view, keys) == expected[keys], (keys, view)


def test_what_nodes_add_is_unknown_in_every_view_of_hours_rolled_up_before_their_costs_were(teams: dict[str, Team]):
    set_quota(-1, teams["lidar"], 8)
    rollups.roll_up(LOCAL, hour(0), hour(4))
    CapacityCostHour.objects.all().delete()
    for view in VIEWS:
        assert beyond(view, ("team",)) == {"__idle__": [None, None, "0", "0", "0", "0"]}, view
