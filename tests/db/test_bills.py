"""Bills and fixed costs: with them all columns add up to what was paid, and nobody learns what others use."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from portal.core import clock
from portal.core.errors import Forbidden, Invalid, Refused
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import bills, capacity_services, fleet_costs, node_intervals, rollups
from quotas.costs.capacity_services import CostSubject
from quotas.costs.cost_rows import COLUMNS
from quotas.costs.fleet_costs import Readings
from quotas.costs.models import Bill, NodeCost
from quotas.costs.node_intervals import FoundNode
from quotas.costs.node_terms import Term
from quotas.costs.questions import IdleBy, IdleMode, IdleView
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering.hours import DAY
from quotas.metering.rolled_up import Detail
from tests.support import cost_answers
from tests.support.capacity import RESOURCES, SEEN, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import person
from tests.support.quotas import T0, hour, used
from tests.support.rows_read import assert_constant, executed

pytestmark = pytest.mark.django_db
OCTOBER = Window(datetime(2026, 10, 1, tzinfo=T0.tzinfo), datetime(2026, 11, 1, tzinfo=T0.tzinfo))
START = (OCTOBER.start - T0).total_seconds() / 3600
HOURS = 31 * 24
CAPACITY = Decimal(8 * HOURS) * Decimal("1.1")
NOVEMBER = hour(0)


@pytest.fixture(autouse=True)
def october(team, other_team) -> Iterator[None]:
    """Eight l40s at 1.10 through October, of which vision holds two for ten days, and language four for one."""
    fleet(team, other_team)
    record(RESOURCES, START - 24)
    used(OCTOBER.start, OCTOBER.start + 10 * DAY, 2)
    used(OCTOBER.start, OCTOBER.start + DAY, 4, team="language", project="language-dev")
    rollups.roll_up(LOCAL, OCTOBER.start - DAY, OCTOBER.end)
    with clock.frozen(NOVEMBER):
        yield


@pytest.fixture
def operator():
    return person(platform_role="operator")


def table(keys: tuple[str, ...] = ("team",), window: Window = OCTOBER, **options: Any) -> dict[str, Any]:
    return {row.name: row for row in cost_answers.costs(window, keys, now=NOVEMBER, **options).rows}


def everything(rows: Any) -> Decimal:
    names = ("cost", "adjustment", "shared_cost", *COLUMNS.values())
    return sum((Decimal(getattr(row, name)) for row in rows for name in names), Decimal(0))


def test_a_bill_is_shared_by_cost_and_all_columns_add_up_to_it(operator):
    assert abs(everything(table(idle=IdleView()).values()) - CAPACITY) < Decimal("0.001")
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY * Decimal("1.5"))
    for keys in (("team",), ("flavor",), ("project", "flavor"), ()):
        assert abs(everything(table(keys, idle=IdleView()).values()) - CAPACITY * Decimal("1.5")) < Decimal("0.001"), (
            keys
        )
    rows = table(idle=IdleView())
    assert (rows["vision"].cost, rows["vision"].adjustment) == ("528.0000", "264.0000")
    assert rows["vision"].total == "792.0000"
    assert rows["__idle__"].adjustment == "0"


def test_days_of_a_month_have_their_part_and_add_up(operator):
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY / 2)
    days = cost_answers.costs(OCTOBER, ("team",), step=Step.DAY, now=NOVEMBER)
    assert sum(Decimal(row.adjustment or 0) for row in days.rows if row.name == "vision") == Decimal("-264.0000")
    half = table(window=Window(OCTOBER.start, OCTOBER.start + 5 * DAY))
    assert half["vision"].adjustment == "-132.0000"
    both = Window(OCTOBER.start - DAY, NOVEMBER)
    assert table(window=both)["vision"].adjustment == "-264.0000"


def test_a_later_bill_of_the_month_replaces_it(operator):
    for factor in (3, 2):
        bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY * factor)
    assert table()["vision"].adjustment == "528.0000"
    assert Bill.objects.count() == 2


def test_a_bill_counts_what_nodes_cost_and_what_is_left_of_them(operator):
    found = dict.fromkeys(("l40s-0", "l40s-1"), FoundNode(None, 64_000, 488 * 1024))
    node_intervals.record(LOCAL, dict.fromkeys(found, SEEN), found, OCTOBER.start)
    subject = CostSubject(Flavor.objects.get(name="l40s"), Term.ON_DEMAND)
    per_node = capacity_services.set_node_cost(SYSTEM, subject, "10", NodeCost.Per.NODE, "aws", "EUR", OCTOBER.start)
    rollups.roll_up(LOCAL, OCTOBER.start, OCTOBER.end)
    nodes = 2 * HOURS * per_node.per_hour
    assert abs(everything(table(idle=IdleView()).values()) - nodes) < Decimal("0.001")
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), nodes * 2)
    rows = table(idle=IdleView())
    assert abs(everything(rows.values()) - nodes * 2) < Decimal("0.001")
    assert Decimal(rows["vision"].adjustment) == round(480 * Decimal("0.6320224719"), 4)


def test_the_share_of_the_money_that_bills_cover(operator):
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "1")
    window = Window(OCTOBER.start - DAY, OCTOBER.end)
    assert cost_answers.costs(window, (), now=NOVEMBER, idle=IdleView()).billed_share == "0.9688"
    assert cost_answers.costs(window, (), now=NOVEMBER, teams=["vision"]).billed_share is None


def test_the_page_says_which_part_bills_cover(operator, client, team):
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "1")
    words = "Bills cover 100 % of what GPUs and nodes cost in this period."
    client.force_login(operator)
    assert words in client.get("/costs?window=lastmonth").content.decode()
    client.force_login(person(team))
    assert "Bills cover" not in client.get("/costs?window=lastmonth").content.decode()


def test_a_month_that_is_not_wholly_recorded_has_no_adjustment(operator):
    bills.enter_bill(operator, LOCAL, date(2026, 9, 1), "1000")
    september = Window(datetime(2026, 9, 1, tzinfo=T0.tzinfo), OCTOBER.start)
    used(september.end - DAY, september.end)
    row = table(window=september)["vision"]
    assert (row.adjustment, row.total, row.cost) == (None, None, "26.4000")


def test_a_fixed_cost_by_weight_is_shared_by_cost(operator):
    bills.set_shared_cost(operator, "network", date(2026, 10, 1), CAPACITY / 10, "weighted")
    rows = table(idle=IdleView())
    assert (rows["vision"].shared_cost, rows["vision"].total) == ("52.8000", "580.8000")
    assert abs(everything(rows.values()) - CAPACITY * Decimal("1.1")) < Decimal("0.001")


def test_a_fixed_cost_is_shared_evenly_between_teams_whatever_they_use(operator):
    bills.set_shared_cost(operator, "support", date(2026, 10, 1), "600", "even")
    rows = table(idle=IdleView())
    assert (rows["vision"].shared_cost, rows["language"].shared_cost) == ("300.0000", "300.0000")
    assert table(("flavor",))["l40s"].shared_cost == "600.0000"


def test_the_part_of_a_team_that_used_nothing_is_the_platforms(operator, other_team):
    bills.set_shared_cost(operator, "support", date(2026, 10, 1), "600", "even")
    [vision] = table(where={"project": ["vision-train"]}).values()
    assert vision.shared_cost == "300.0000"
    september = Window(OCTOBER.start - DAY, OCTOBER.start)
    assert table(window=september, idle=IdleView())["__idle__"].idle_shared_cost == "0"
    bills.set_shared_cost(operator, "licences", date(2026, 9, 1), "300", "even")
    row = table(window=september, idle=IdleView())["__idle__"]
    assert row.idle_shared_cost == "10.0000"


def test_a_fixed_cost_counts_as_its_month_passes_and_until_the_next(operator):
    bills.set_shared_cost(operator, "network", date(2026, 10, 1), "310", "weighted")
    bills.set_shared_cost(operator, "network", date(2026, 11, 1), "0", "weighted")
    ten_days = Window(OCTOBER.start, OCTOBER.start + 10 * DAY)
    with clock.frozen(OCTOBER.start + 10 * DAY):
        rows = cost_answers.costs(ten_days, (), now=clock.now(), idle=IdleView()).rows
    parts = Decimal(rows[0].shared_cost or 0) + Decimal(rows[0].idle_shared_cost or 0)
    assert abs(parts - 100) <= Decimal("0.0001")
    november = Window(OCTOBER.end, NOVEMBER)
    assert table((), november, idle=IdleView())["all"].idle_shared_cost == "0"


def test_a_window_that_reaches_into_the_next_month_is_read_until_now(operator):
    bills.set_shared_cost(operator, "support", date(2026, 11, 1), "600", "even")
    ahead = Window(OCTOBER.end, OCTOBER.end + 40 * DAY)
    row = table(window=ahead, idle=IdleView())["__idle__"]
    assert row.idle_shared_cost == "20.0000"


def test_a_team_learns_nothing_of_what_others_use(operator):
    """Two worlds that differ in what the other team uses: the answers to vision are the same."""
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY * 2)
    bills.set_shared_cost(operator, "network", date(2026, 10, 1), "310", "weighted")
    bills.set_shared_cost(operator, "support", date(2026, 10, 1), "600", "even")
    before = [table(keys, teams=["vision"]) for keys in (("team",), ("flavor",), ("project", "member"))]
    used(OCTOBER.start, OCTOBER.start + 3 * DAY, 2, team="language", project="language-dev")
    used(OCTOBER.start + DAY, OCTOBER.start + 2 * DAY, 2, team="third", project="third-dev")
    rollups.roll_up(LOCAL, OCTOBER.start, OCTOBER.end)
    after = [table(keys, teams=["vision"]) for keys in (("team",), ("flavor",), ("project", "member"))]
    assert after == before


def test_it_takes_as_many_statements_for_many_teams_as_for_one(operator):
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY * 2)

    def teams(*numbers):
        for number in numbers:
            used(OCTOBER.start, OCTOBER.start + DAY, team=f"team-{number}", project=f"project-{number}")
        rollups.roll_up(LOCAL, OCTOBER.start, OCTOBER.start + DAY)

    teams(0)
    assert_constant(table, lambda: teams(*range(1, 50)), at_most=15)


IDLE_BY_NODE = IdleView(IdleMode.SHARE, IdleBy.NODE)


@pytest.mark.parametrize("view", [IdleView(), IdleView(IdleMode.OWNER), IDLE_BY_NODE], ids=["apart", "owner", "node"])
@pytest.mark.parametrize(
    ("start", "step", "readings"),
    [
        (OCTOBER.start, Step.ALL, 1),
        (OCTOBER.start, Step.DAY, 1),
        (OCTOBER.start - 30 * DAY, Step.ALL, 1),
        (OCTOBER.start + 5 * DAY, Step.DAY, 2),
    ],
    ids=["month", "days of a month", "two months", "part of a month"],
)
def test_the_hours_of_the_fleet_are_read_once_where_months_are_whole(operator, start, step, readings, view):
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), CAPACITY)
    bills.set_shared_cost(operator, "network", date(2026, 10, 1), "100", "weighted")
    rollups.roll_up(LOCAL, OCTOBER.start - 30 * DAY, OCTOBER.start - DAY)
    with executed() as context:
        cost_answers.costs(Window(start, OCTOBER.end), ("team",), step=step, now=NOVEMBER, idle=view)
    assert sum("t0 AS gap_start" in sql for sql, _ in context) == readings


@pytest.mark.parametrize("detail", Detail)
def test_longer_steps_of_one_reading_are_what_a_reading_of_their_own_has(detail):
    days = [OCTOBER.start + number * DAY for number in range(32)]
    longer = [days[0], days[3], days[20], days[31]]
    readings = Readings(NOVEMBER, days)
    found, own = readings.between(longer, detail), fleet_costs.read(longer, NOVEMBER, detail)
    assert found and own
    for keys in (("flavor",), ("node",), ("team",)):
        question = cost_answers.question(OCTOBER, keys, now=NOVEMBER).between(longer)
        assert fleet_costs.grouped(question, found.parts, found.lines()) == fleet_costs.grouped(
            question, own.parts, own.lines()
        )
    assert readings.between(days) is readings.between(days, detail)


def test_bills_that_cannot_be(operator, team):
    with pytest.raises(Invalid, match="has ended"):
        bills.enter_bill(operator, LOCAL, date(2026, 11, 1), "1")
    with pytest.raises(Invalid, match="no cluster"):
        bills.enter_bill(operator, "nowhere", date(2026, 10, 1), "1")
    with pytest.raises(Invalid, match="two currencies"):
        bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "1", "USD")
    with pytest.raises(Forbidden):
        bills.enter_bill(person(team), LOCAL, date(2026, 10, 1), "1")


def test_fixed_costs_that_cannot_be(operator, team):
    bills.set_shared_cost(operator, "network", date(2026, 10, 1), "310", "weighted")
    with pytest.raises(Refused, match="another cost"):
        bills.set_shared_cost(operator, "network", date(2026, 10, 1), "311", "weighted")
    bills.set_shared_cost(operator, "support", date(2026, 8, 1), "1", "weighted")
    with pytest.raises(Invalid, match="cannot change"):
        bills.set_shared_cost(operator, "support", date(2026, 10, 1), "2", "weighted")
    for values, words in (
        ({"split": "half"}, "Use one of"),
        ({"split": "weighted", "teams": ["vision"]}, "only if"),
        ({"split": "even", "teams": ["nobody"]}, "no team"),
        ({"split": "weighted", "cluster": "nowhere"}, "no cluster"),
    ):
        with pytest.raises(Invalid, match=words):
            bills.set_shared_cost(operator, "x", date(2026, 11, 1), "1", **values)
    with pytest.raises(Forbidden):
        bills.set_shared_cost(person(team), "x", date(2026, 11, 1), "1", "even")


@pytest.mark.parametrize("text", ["", "2026", "2026-13", "2026-1", "26-01", "2026-01-01"])
def test_months_that_are_none(text):
    with pytest.raises(Invalid, match="is not a valid month"):
        bills.month_of(text)


def test_without_bills_and_fixed_costs_nothing_is_read(django_assert_num_queries):
    with django_assert_num_queries(2):
        table()
