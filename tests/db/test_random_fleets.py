"""Random fleets, holds and Jobs of every kind, recorded by the functions of the watcher, some events late, twice or
never heard of: the ledger adds up to the last digit, and is the same whatever arrived when.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from allocations.reconcile.metering import balance_proof, ledger_rollups
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.models import Project, Team, User
from quotas.costs import ledger
from quotas.costs.rating import RatedUsage
from quotas.metering.models import AccountHour, DayTotal, HourTotal
from tests.support import hours_by_flavor
from tests.support.clusters import LOCAL
from tests.support.week import events, plan
from tests.support.week.bodies import T0, moment
from tests.support.week.plan import HOUR, LATE, NEW_PRICES, Plan, Span, Times

pytestmark = pytest.mark.django_db
ALLOCATIONS = 40
TIMES = Times(length=12 * HOUR, gaps=(Span(3 * HOUR, 4 * HOUR),), moved=6 * HOUR)
END = moment(TIMES.length)
KEY_SETS: Sequence[tuple[str, ...]] = [("department", "team"), ("flavor", "offering"), ("allocation",)]
Content = list[tuple[Any, ...]]


@pytest.fixture
def projects(team: Team, other_team: Team) -> list[Project]:
    teams = (team, team, other_team, other_team)
    return [tenants.create_project(each, f"{each.slug}-{n}", "Simulated") for n, each in enumerate(teams)]


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller seed is no simpler fleet
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_a_random_fleet_adds_up_whatever_is_heard_of_late_twice_or_never(
    projects: list[Project], member: User, seed: int
) -> None:
    drawn = plan.draw(seed, ALLOCATIONS, TIMES)
    contents = []
    for number, heard in enumerate((drawn, with_other_delays(drawn, seed))):
        with transaction.atomic():
            now = record(heard, projects, member, Random(seed), repeated=seed + number)
            with clock.frozen(now + timedelta(hours=1)):
                contents.append(checked(Random(seed)))
            transaction.set_rollback(True)
    assert contents[0] == contents[1]


def with_other_delays(drawn: Plan, seed: int) -> Plan:
    """Return the same events, of which those that are heard of late are so by other times."""
    random = Random(seed)
    uses = [replace(use, late=random.randrange(LATE) if use.late else 0) for use in drawn.uses]
    jobs = [replace(job, late=random.randrange(LATE) if job.late else 0) for job in drawn.jobs]
    return Plan(drawn.times, uses, jobs, drawn.nodes)


def record(drawn: Plan, projects: list[Project], member: User, random: Random, repeated: int) -> datetime:
    """Record the fleet with random prices, of which some flavors have none at first, or ever; return when it is listed
    afterwards. ``repeated`` says which events are heard of twice.
    """
    events.offer(drawn)
    with clock.frozen(T0):
        for since in sorted(random.randrange(TIMES.length * 10**6) for _ in range(3)):
            prices = {name: f"{random.random():.10f}" for name in random.sample(sorted(NEW_PRICES), 4)}
            events.set_prices(prices, T0 + timedelta(microseconds=since))
    hiding = random.randrange(TIMES.length)
    changes = {
        TIMES.moved: partial(events.move_team, TIMES.moved),
        hiding: partial(events.hide, hiding, random.choice([("2g.20gb",), ("",), ("3g.40gb", "4g.40gb")])),
    }
    happened = [*events.of_fleet(drawn), *events.of_uses(drawn, projects, member)]
    events.record(happened, repeated, TIMES, changes)
    return events.list_again(happened)


def checked(random: Random) -> Content:
    """Check that the ledger adds up, and return its roll-ups."""
    edges = [T0, *sorted(T0 + timedelta(microseconds=random.randrange(TIMES.length * 10**6)) for _ in range(3)), END]
    adjoining_windows_add_up(edges)
    sums = [ledger.sums(edges, keys, {}, END) for keys in KEY_SETS]
    assert {one.names[0] for one in sums[0]} <= {"research", events.ELSEWHERE}
    held = sum(amount for (_, category), amount in by_part(T0, END).items() if category == "held")
    assert [sum(one.usage.gpu_hours for one in each) for each in sums] == [held] * len(KEY_SETS)
    contents = []
    for _ in range(2):
        assert ledger_rollups.rebuild(LOCAL, None, END) == TIMES.length // HOUR
        contents.append(content())
    assert contents[0] == contents[1]
    assert [usages(ledger.sums(edges, keys, {}, END)) for keys in KEY_SETS] == [usages(each) for each in sums]
    adjoining_windows_add_up(edges)
    proofs = list(balance_proof.prove_between(LOCAL, None, END))
    assert len(proofs) == TIMES.length // HOUR
    assert not [one.failures for one in proofs if not one.balanced]
    return contents[0]


def adjoining_windows_add_up(edges: Sequence[datetime]) -> None:
    """Check that the windows between the edges have as much as the whole, of each part and of what each team held."""
    whole, *windows = (by_part(*window) for window in ((T0, END), *pairwise(edges)))
    assert {key: sum((one.get(key, Fraction(0)) for one in windows), Fraction(0)) for key in whole} == whole
    assert all(amount > 0 for (_, category), amount in whole.items() if category != "variance")
    for keys in KEY_SETS:
        total = {one.names: one.usage for one in ledger.sums([T0, END], keys, {}, END)}
        added = dict.fromkeys(total, RatedUsage())
        for one in ledger.sums(edges, keys, {}, END):
            added[one.names] += one.usage
        assert added == total


def by_part(start: datetime, end: datetime) -> dict[tuple[str, str], Fraction]:
    found = hours_by_flavor.by_flavor(start, end)
    assert all(hours.is_balanced for hours in found)
    return {(one.flavor, category.value): hours for one in found for category, hours in one.parts.items() if hours}


def usages(sums: Sequence[ledger.Sum]) -> dict[tuple[datetime, tuple[str, ...]], RatedUsage]:
    return {(one.window.start, one.names): one.usage for one in sums}


def content() -> Content:
    """Return all rows of the roll-ups without their own keys."""
    found: Content = []
    for model in (AccountHour, HourTotal, DayTotal):
        columns = [field.attname for field in model._meta.concrete_fields if field.attname != "id"]
        found += sorted(model._default_manager.order_by().values_list(*columns), key=repr)
    return found
