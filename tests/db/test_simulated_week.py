"""A week of 1,000 allocations and Jobs on a fleet whose nodes fail, and whose layout and prices change, recorded by the
functions of the watcher: every number equals that of a second calculation, which samples each second.

Foreign pods and claims use GPUs beside them, some events are heard of late or twice, and some holds are longer than the
week. Twice nobody watches for an hour or two. Prices change at midnight in Berlin; T4 have none before. A team moves to
another department, and what its projects hold from then on is charged there. A profile is hidden.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Q
from django.test import Client

from allocations.models import Allocation
from allocations.reconcile.metering import balance_proof, ledger_rollups, open_intervals
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.costs import ledger, selectors
from quotas.costs.selectors import Charge
from quotas.metering.models import AccountHour, CapacityInterval, DayTotal, ForeignUse, HourTotal, UsageInterval
from tests.support import costs_by_moment, hours_by_flavor
from tests.support.clusters import LOCAL
from tests.support.people import client, person
from tests.support.sizes import size
from tests.support.week import bill, events, hearing, plan, seconds
from tests.support.week.bill import Amount, Names
from tests.support.week.bodies import T0, moment
from tests.support.week.plan import HOUR, WEEK_HOURS, Plan
from tests.support.week.seconds import Result

pytestmark = pytest.mark.django_db
SEED = 15
ALLOCATIONS = size(120, 1000)
CHANGE = datetime(2026, 11, 5, tzinfo=ZoneInfo("Europe/Berlin"))
END = moment(plan.WEEK)
ESTIMATED = Q(estimated_start=True) | Q(estimated_end=True)
IN_GAPS = Q()
"""An estimated bound is in a gap."""
for gap in plan.TIMES.gaps:
    within = (moment(gap.start), moment(gap.end))
    IN_GAPS |= Q(estimated_start=True, start__range=within) | Q(estimated_end=True, end__range=within)
STEPS = [range(plan.PRICES_CHANGE), range(plan.PRICES_CHANGE, WEEK_HOURS)]
DAYS = [range(start, start + 24) for start in range(0, WEEK_HOURS, 24)]
KEY_SETS: Sequence[tuple[str, ...]] = [
    *((), ("department",), ("team",), ("project", "namespace"), ("member",), ("flavor", "offering", "kind")),
    *(("allocation",), ("cluster",)),
]
URL = "/api/v1/costs"
WINDOW = f"{T0:%FT%TZ},{END:%FT%TZ}"
CATEGORIES = {"held", "unmanaged", "unavailable", "stranded", "idle", "variance"}
COLUMNS = {
    "idle_cost": "idle",
    "stranded_cost": "stranded",
    "unavailable_cost": "unavailable",
    "unmanaged_cost": "unmanaged",
    "variance": "variance",
}
CENTS, MICROHOURS = 10**4, 10**6
"""Units of the last place of amounts in answers."""


@pytest.fixture
def projects(team: Team, other_team: Team) -> list[Project]:
    teams = (team, team, other_team, other_team)
    return [tenants.create_project(SYSTEM, each, f"{each.slug}-{n}", "Simulated") for n, each in enumerate(teams)]


def holders(heard: Plan, projects: Sequence[Project], member: User) -> dict[int, Names]:
    """Return the value of each key of the ledger, and the GPU, by the number of a hold or Job."""
    flavors, rows = events.flavors(), {row.number: row for row in Allocation.objects.select_related("offering")}

    def names(flavor: str, project: int, member: str, holder: object, offering: Offering, node: str = "") -> Names:
        row = projects[project % plan.PROJECTS]
        return {
            "gpu": flavor,
            "flavor": flavors[flavor],
            "offering": offering.key,
            "kind": offering.kind,
            "department": "research" if project < plan.PROJECTS else events.ELSEWHERE,
            "team": row.team.slug,
            "project": row.slug,
            "namespace": row.namespace,
            "member": member,
            "allocation": str(holder),
            "cluster": LOCAL,
            "node": node,
        }

    found = {}
    for use in heard.uses:
        if use.project is not None:
            row, node = rows[use.number], use.devices[0].node if use.devices else ""
            found[use.number] = names(use.flavor, use.project, member.username, row.pk, row.offering, node)
    whole = Offering.objects.get(flavor__name=flavors["l40s"], kind="whole")
    for job in heard.jobs:
        found[job.number] = names("l40s", job.project, "", events.job_uid(job), whole)
    return found


def check_accounts(result: Result) -> None:
    """Compare the parts of the accounts, each split once over the whole week."""
    names = {flavor: name for name, flavor in events.flavors().items()}
    found: dict[tuple[str, str], Fraction] = {}
    for hours in hours_by_flavor.by_flavor(T0, END):
        assert hours.is_balanced
        found |= {(names[hours.flavor], category.value): amount for category, amount in hours.parts.items() if amount}
    assert found == {key: sum(hours) for key, hours in result.parts.items() if any(hours)}


def check_sums(result: Result, names: Mapping[int, Names]) -> None:
    """Compare the sums of the ledger and its roll-ups, by keys of each kind, around the new prices and by day."""
    of_h100 = {"flavor": [events.flavors()["h100"]]}
    for keys, where in [*((keys, {}) for keys in KEY_SETS), (("node",), of_h100)]:
        for steps in (STEPS, DAYS):
            edges = [moment(step.start * HOUR) for step in steps] + [END]
            found = {
                (edges.index(one.window.start), one.names): costs_by_moment.of_sum(one)
                for one in ledger.sums(edges, keys, where, END)
            }
            assert found == bill.by_keys(result.held, names, keys, steps, where), (keys, steps)


def check_charges(result: Result, names: Mapping[int, Names]) -> None:
    """Compare what each allocation and Job is charged for until the end of the week."""
    expected = {}
    for number, values in names.items():
        hours, unpriced, cost = total = bill.amount(values["gpu"], result.held[number])
        used = hours if values["member"] else result.used[number]
        expected[UUID(values["allocation"])] = Charge(hours, used, unpriced, None if total.is_unpriced else cost)
    assert selectors.charges_to_date(expected.keys(), END) == expected


def check_roll_ups(result: Result, names: Mapping[int, Names]) -> None:
    """Compare hours and days by flavor and category, and the hours of each holder."""
    flavors = events.flavors()
    for model, hours_each in ((HourTotal, 1), (DayTotal, 24)):
        assert rolled_up(model, hours_each, "flavor", "category") == {
            (step, flavors[flavor], category): amount
            for (flavor, category), hours in result.parts.items()
            for step in range(WEEK_HOURS // hours_each)
            if (amount := sum(hours[step * hours_each : (step + 1) * hours_each]))
        }
    held = rolled_up(AccountHour, 1, "holder_id", "category")
    assert {(hour, str(holder)): amount for (hour, holder, of), amount in held.items() if of == "held"} == {
        (hour, names[number]["allocation"]): amount
        for number, hours in result.held.items()
        for hour, amount in enumerate(hours)
        if amount
    }


def rolled_up(model: Any, hours_each: int, *columns: str) -> dict[tuple[Any, ...], Fraction]:
    """Return GPU-hours by number of the hour or day, and these columns."""
    found: dict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for start, denominator, amount, *values in model.objects.values_list("start", "denominator", "amount", *columns):
        step = (start - T0) // timedelta(hours=hours_each)
        found[step, *values] += Fraction(int(amount), int(denominator) * 3_600_000_000)
    return {key: amount for key, amount in found.items() if amount}


def check_proof(result: Result, auditor: Client) -> None:
    """Prove each hour, compare what is stored, and what the last page of answers says."""
    assert not list(open_intervals.differences(LOCAL))
    rows = list(balance_proof.prove_between(LOCAL, None, END))
    assert [row.hour for row in rows] == [moment(hour * HOUR) for hour in range(WEEK_HOURS)]
    categories = {category for _, category in result.parts}
    expected = [
        {
            one: sum((hours[hour] for (_, category), hours in result.parts.items() if category == one), Fraction(0))
            for one in categories
        }
        for hour in range(WEEK_HOURS)
    ]
    for row, parts in zip(rows, expected, strict=True):
        assert row.balanced, row.failures
        assert row.capacity_gpu_hours == rounded(sum(parts.values(), Fraction(0)), MICROHOURS)
        assert sum(getattr(row, one) for one in categories) == row.capacity_gpu_hours
        assert all(is_near(getattr(row, one), amount, MICROHOURS) for one, amount in parts.items())
    answer = auditor.get(f"{URL}/proof", {"window": WINDOW, "limit": "200"}).json()["results"]
    assert len(answer) == WEEK_HOURS
    for row, one in zip(rows, reversed(answer), strict=True):
        assert {name: Decimal(one[name]) for name in categories} == {name: getattr(row, name) for name in categories}
        assert (one["balanced"], Decimal(one["capacity_gpu_hours"])) == (True, row.capacity_gpu_hours)


def check_answers(result: Result, names: Mapping[int, Names], auditor: Client, of_team: Client) -> None:
    """Compare answers of the REST API, also of what nobody is charged for, of outages, and to a member of one team."""
    flavors = events.flavors()
    for keys, steps in ((("flavor",), DAYS), (("department",), [range(WEEK_HOURS)])):
        query = {"aggregate": ",".join(keys), "accumulate": str(steps is not DAYS).lower()}
        held = bill.by_keys(result.held, names, keys, steps)
        others: dict[tuple[int, tuple[str, ...]], dict[str, Amount]] = defaultdict(lambda: defaultdict(Amount))
        for (flavor, category), hours in result.parts.items():
            for step, which in enumerate(steps):
                group = step, (flavors[flavor] if keys == ("flavor",) else "__idle__",)
                others[group][category] = bill.add([others[group][category], bill.amount(flavor, hours, which)])
        check_rows(auditor.get(URL, query | {"window": WINDOW}).json(), steps, held, others)
    answer = auditor.get(URL, {"window": WINDOW}).json()
    away = [hour for gap in plan.TIMES.gaps for hour in range(gap.start // HOUR, gap.end // HOUR)]
    check_outages(answer["outages"], bill.by_keys(result.held, names, (), [away])[0, ()])
    own = bill.by_keys(result.held, names, ("project",), [range(WEEK_HOURS)], {"team": ["vision"]})
    check_rows(of_team.get(URL, {"window": WINDOW}).json(), [range(WEEK_HOURS)], own, {})


def check_rows(
    answer: Any,
    steps: Sequence[range],
    held: Mapping[tuple[int, tuple[str, ...]], Amount],
    others: Mapping[tuple[int, tuple[str, ...]], Mapping[str, Amount]],
) -> None:
    """Compare the rows of an answer with what is held, and not; rounded amounts add up to the rounded sum."""
    starts = [f"{moment(step.start * HOUR):%FT%TZ}" for step in steps]
    rows = {(starts.index(row["window"]["start"]), (row["name"],)): row for row in answer["results"]}
    assert rows.keys() == held.keys() | others.keys()
    total = bill.add(held.values())
    for column, units, exact in (("gpu_hours", MICROHOURS, total.hours), ("cost", CENTS, total.cost)):
        assert sum(Decimal(row[column] or 0) for row in rows.values()) == rounded(exact, units)
    for group, row in rows.items():
        hours, unpriced, cost = amount = held.get(group, Amount())
        assert is_near(row["gpu_hours"], hours, MICROHOURS)
        assert is_near(row["unpriced_gpu_hours"], unpriced, MICROHOURS)
        assert row["total"] == row["cost"]
        assert row["cost"] is None if amount.is_unpriced else is_near(row["cost"], cost, CENTS)
        for column, category in COLUMNS.items():
            found, one = row[column], others.get(group, {}).get(category, Amount())
            assert found is None if one.is_unpriced else is_near(found, one.cost, CENTS), (group, column)
    idle = [by_category.get("idle", Amount()) for by_category in others.values()]
    priced = bill.add(amount for amount in idle if not amount.is_unpriced)
    assert sum(Decimal(row["idle_cost"] or 0) for row in rows.values()) == rounded(priced.cost, CENTS)


def check_outages(answer: Any, expected: Amount) -> None:
    spans = [(one["window"]["start"], one["window"]["end"]) for one in answer["results"]]
    assert spans == [(f"{moment(gap.start):%FT%TZ}", f"{moment(gap.end):%FT%TZ}") for gap in plan.TIMES.gaps]
    assert Decimal(answer["gpu_hours"]) == rounded(expected.hours, MICROHOURS)
    assert Decimal(answer["cost"]) == rounded(expected.cost, CENTS)


def rounded(exact: Fraction, units: int) -> Decimal:
    """Return the amount in whole units of the last place, half to even."""
    return Decimal(round(exact * units)) / units


def is_near(found: str | Decimal, exact: Fraction, units: int) -> bool:
    """Return whether the amount is the exact one rounded up or down."""
    return abs(Fraction(Decimal(found)) - exact) * units < 1


def test_every_number_of_a_week_is_that_of_a_calculation_second_by_second(
    team: Team, projects: list[Project], member: User
) -> None:
    week = plan.draw(SEED, ALLOCATIONS)
    assert sum(use.project is not None for use in week.uses) + len(week.jobs) == ALLOCATIONS
    events.offer(week)
    assert moment(plan.PRICES_CHANGE * HOUR) == CHANGE
    with clock.frozen(T0):
        events.set_prices(plan.PRICES, T0)
        events.set_prices(plan.NEW_PRICES, CHANGE)
    happened = [*events.of_fleet(week), *events.of_uses(week, projects, member)]
    changes = {
        week.times.moved: partial(events.move_team, week.times.moved),
        week.times.hiding: partial(events.hide, week.times.hiding, week.times.hidden),
    }
    events.record(happened, SEED, week.times, changes)
    heard = hearing.as_heard(week)
    result, names = seconds.of_plan(heard), holders(heard, projects, member)
    assert {category for (_, category), hours in result.parts.items() if any(hours)} == CATEGORIES
    check_accounts(result)
    check_sums(result, names)
    with clock.frozen(events.list_again(happened) + timedelta(hours=1)):
        assert ledger_rollups.rebuild(LOCAL, None, END) == WEEK_HOURS
        check_roll_ups(result, names)
        check_sums(result, names)
        check_charges(result, names)
        auditor = client(person(platform_role="auditor"))
        check_proof(result, auditor)
        check_answers(result, names, auditor, client(member))
    for model in (UsageInterval, CapacityInterval, ForeignUse):
        estimated = model.objects.filter(ESTIMATED)
        assert estimated.exists() and not estimated.exclude(IN_GAPS).exists()
