"""Costs over long windows: as many statements however much there is to add up, which read the totals of whole days."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from quotas.costs import ledger, rollups
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering.hours import DAY
from quotas.metering.models import DayTotal, DirtyHour, HourTotal, RolledUpHour, UsageInterval
from tests.support import cost_answers
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.quotas import T0, hour, used
from tests.support.rows_read import statements

pytestmark = pytest.mark.django_db
DAYS = 6
MONTHS = [T0 - timedelta(days=1), T0 + timedelta(days=3), T0 + timedelta(days=DAYS)]


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    fleet()


def use(teams: int) -> None:
    """Record an interval of three hours of each team on each day, and roll them up."""
    for team in range(teams):
        for day in range(DAYS):
            begin = hour(24 * day + team % 20)
            used(begin, begin + timedelta(hours=3), team=f"team-{team}", project=f"project-{team}")
    rollups.roll_up(LOCAL, T0, T0 + DAYS * DAY)


@pytest.mark.parametrize(
    ("keys", "step", "window"),
    [
        (("team", "offering"), Step.DAY, Window(T0, T0 + DAYS * DAY)),
        (("project",), Step.ALL, Window(T0 - DAY, T0 + DAYS * DAY)),
    ],
)
def test_costs_take_as_many_statements_of_few_teams_and_days_as_of_many(keys, step, window):
    def ask(days: int) -> Callable[[], object]:
        asked = Window(window.start, window.start + days * DAY)
        return lambda: cost_answers.costs(asked, keys, step=step, now=T0 + DAYS * DAY)

    use(1)
    few = statements(ask(1))
    use(30)
    assert statements(ask(DAYS)) == few <= 5


def test_sums_by_month_are_one_statement():
    use(3)
    assert statements(lambda: ledger.sums(MONTHS, ("project",), {}, MONTHS[-1])) == 1


def sums(edges, keys=("team",)):
    return {(one.window, one.names): one.usage for one in ledger.sums(edges, keys, {}, T0 + DAYS * DAY)}


def test_whole_days_are_read_from_their_totals_alone():
    use(3)
    expected = sums(MONTHS)
    assert len(expected) == 6
    HourTotal.objects.all().delete()
    UsageInterval.objects.all().delete()
    assert sums(MONTHS) == expected


def test_a_marked_hour_leaves_the_hours_around_it_and_the_other_days_to_the_roll_ups():
    use(3)
    edges = [T0 + day * DAY for day in range(DAYS + 1)]
    expected = sums(edges)
    DirtyHour.objects.create(cluster_id=LOCAL, hour=hour(26))
    DayTotal.objects.filter(start=hour(24)).delete()
    HourTotal.objects.filter(start=hour(26)).delete()
    UsageInterval.objects.filter(end__lte=hour(26)).delete()
    UsageInterval.objects.filter(start__gte=hour(27)).delete()
    assert sums(edges) == expected


def test_days_that_adjoin_in_a_step_but_for_one_are_read_around_it():
    use(2)
    edges = [T0, T0 + DAYS * DAY]
    expected = sums(edges)
    RolledUpHour.objects.filter(hour__gte=hour(48), hour__lt=hour(72)).delete()
    DayTotal.objects.filter(start=hour(48)).delete()
    HourTotal.objects.all().delete()
    assert sums(edges) == expected


def test_of_each_cluster_the_days_are_read_that_it_has_rolled_up():
    make_cluster("other")
    use(2)
    for day in range(DAYS):
        used(hour(24 * day + 5), hour(24 * day + 7), cluster="other")
    rollups.roll_up("other", T0, T0 + 2 * DAY)
    found = sums([T0, T0 + DAYS * DAY], ("cluster",))
    assert {names: usage.gpu_hours for (_, names), usage in found.items()} == {
        (LOCAL,): 2 * 3 * DAYS,
        ("other",): 2 * DAYS,
    }


def test_sums_add_up_to_the_total_of_their_window():
    use(3)
    found = ledger.sums(MONTHS, ("team",), {}, MONTHS[-1])
    total = ledger.total(found, Window(MONTHS[0], MONTHS[-1])).usage
    assert total.gpu_hours == sum(one.usage.gpu_hours for one in found) == 3 * 3 * DAYS
    assert total.priced_cost == sum(one.usage.priced_cost for one in found)


def test_windows_that_adjoin_and_cut_a_day_add_up():
    use(4)
    edges = [T0, hour(25.5), hour(49.25), T0 + DAYS * DAY]
    whole = ledger.total(ledger.sums([edges[0], edges[-1]], (), {}, edges[-1]), Window(T0, edges[-1])).usage
    parts = [one.usage for pair in pairwise(edges) for one in ledger.sums(pair, (), {}, edges[-1])]
    assert sum(part.gpu_hours for part in parts) == whole.gpu_hours
    assert sum(part.priced_cost for part in parts) == whole.priced_cost
