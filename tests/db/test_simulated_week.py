"""A week of 1,000 allocations and Jobs on a fleet whose nodes fail, and whose layout and prices change, recorded by the
functions of the watcher: every number equals that of a second calculation, which samples each second.

Foreign pods and claims use GPUs beside them, some events are heard of late or twice, and some holds are longer than the
week. Twice nobody watches for an hour or two. Prices change at midnight in Berlin; T4 have none before. A team moves to
another department, and what its projects hold from then on is charged there.
"""

from collections import defaultdict
from datetime import datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Q

from allocations.projects import transfer
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Flavor
from quotas.costs import ledger, services
from quotas.metering import balance
from quotas.metering.models import CapacityInterval, ForeignUse, UsageInterval
from tests.support import hours_by_flavor
from tests.support.clusters import LOCAL
from tests.support.week import events, hearing, plan, seconds
from tests.support.week.events import T0, moment

pytestmark = pytest.mark.django_db
SEED = 15
ALLOCATIONS = 1000
CHANGE = datetime(2026, 11, 5, tzinfo=ZoneInfo("Europe/Berlin"))
CHANGE_S = int((CHANGE - T0).total_seconds())
END = moment(plan.WEEK)
PRICES = {"h100": ("3.2", "2.95"), "l40s": ("1.1", "1.25"), "a100": ("1.8", "1.7"), "t4": (None, "0.35")}
"""Of a GPU-hour before and after the change."""
CHECKED_HOURS = range(0, 168, 8)
ESTIMATED = Q(estimated_start=True) | Q(estimated_end=True)
IN_GAPS = Q()
"""An estimated bound is in a gap."""
for gap in plan.GAPS:
    within = (moment(gap.start), moment(gap.end))
    IN_GAPS |= Q(estimated_start=True, start__range=within) | Q(estimated_end=True, end__range=within)
ELSEWHERE = "elsewhere"
Costs = dict[tuple[int, str], tuple[Fraction, Fraction, Fraction]]
"""GPU-hours, those without a price, and the cost, by whether the prices have changed, and by name."""


@pytest.fixture
def projects(team: Team, other_team: Team) -> list[Project]:
    teams = (team, team, other_team, other_team)
    return [tenants.create_project(each, f"{each.slug}-{n}", "Simulated") for n, each in enumerate(teams)]


def set_prices() -> None:
    with clock.frozen(T0):
        for name, flavor in events.flavors().items():
            for amount, since in zip(PRICES[name], (T0, moment(CHANGE_S)), strict=True):
                if amount is not None:
                    services.set_price("test", Flavor.objects.get(name=flavor), amount, "EUR", since)


def move_team() -> None:
    transfer.move_team(Team.objects.get(slug="vision"), tenants.create_department(ELSEWHERE, "Elsewhere"), actor="test")


def parts() -> dict[str, dict[str, Fraction]]:
    """Return the GPU-hours of the week by flavor and category, without those of zero."""
    names = {flavor: name for name, flavor in events.flavors().items()}
    found = {}
    for hours in hours_by_flavor.by_flavor(T0, END):
        assert hours.is_balanced
        found[names[hours.flavor]] = {category.value: amount for category, amount in hours.parts.items() if amount}
    return found


def costs(key: str) -> Costs:
    edges = [T0, moment(CHANGE_S), END]
    return {
        (edges.index(one.window.start), one.names[0]): (
            one.usage.gpu_hours,
            one.usage.unpriced_gpu_hours,
            one.usage.priced_cost,
        )
        for one in ledger.sums(edges, [key], {}, END)
    }


def expected_costs(result: seconds.Result, names: list[str]) -> Costs:
    """Return the costs by the second calculation; ``names`` are those of the four projects, of their teams, or of their
    departments, and then once more of the projects that have moved.
    """
    found: dict[tuple[int, str], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    for (project, flavor), both in result.held.items():
        for changed, (hours, price) in enumerate(zip(both, PRICES[flavor], strict=True)):
            amounts = found[changed, names[project]]
            amounts[0] += hours
            amounts[1] += hours if price is None else 0
            amounts[2] += hours * Fraction(price or 0)
    return {key: (hours, unpriced, cost) for key, (hours, unpriced, cost) in found.items()}


def test_every_number_of_a_week_is_that_of_a_calculation_second_by_second(
    projects: list[Project], member: User
) -> None:
    week, moved = plan.draw(SEED, ALLOCATIONS), [projects[number] for number in plan.MOVED_PROJECTS]
    assert sum(use.project is not None for use in week.uses) + len(week.jobs) == ALLOCATIONS
    events.offer(week)
    set_prices()
    happened = [*events.of_fleet(week), *events.of_uses(week, projects, member)]
    events.record(happened, SEED, {plan.MOVED: move_team})
    result = seconds.of_week(hearing.as_heard(week), CHANGE_S)
    expected = {
        flavor: {category: amount for category, amount in amounts.items() if amount}
        for flavor, amounts in result.parts.items()
    }
    assert {category for amounts in expected.values() for category in amounts} == {
        *("held", "unmanaged", "unavailable", "stranded", "idle", "variance")
    }
    for _ in range(2):
        assert parts() == expected
        assert costs("project") == expected_costs(result, [project.slug for project in (*projects, *moved)])
        assert costs("team") == expected_costs(result, [project.team.slug for project in (*projects, *moved)])
        assert costs("department") == expected_costs(result, ["research"] * plan.PROJECTS + [ELSEWHERE] * len(moved))
        events.list_again(happened)
    for model in (UsageInterval, CapacityInterval, ForeignUse):
        estimated = model.objects.filter(ESTIMATED)
        assert estimated.exists() and not estimated.exclude(IN_GAPS).exists()
    for hour in CHECKED_HOURS:
        assert not balance.of_hour(LOCAL, moment(hour * plan.HOUR)).failures
