"""Random fleets, holds and Jobs of every kind, recorded by the functions of the watcher, some events late, twice or
never heard of: the ledger adds up to the last digit, is the same whatever arrived when, and is what a calculation
second by second says.

Hours are rolled up while they are recorded, so that what is heard of late has to mark them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.costs import ledger
from quotas.costs.rating import RatedUsage
from quotas.metering import dirty_hours
from quotas.metering.models import AccountHour, DayTotal, HourTotal
from tests.support import hours_by_flavor
from tests.support.clusters import LOCAL
from tests.support.sizes import size
from tests.support.week import events, hearing, plan, seconds
from tests.support.week.bodies import T0, moment
from tests.support.week.events import BATCH_S
from tests.support.week.plan import HOUR, LATE, NEW_PRICES, Plan, Span, Times
from tests.support.week.seconds import Result

pytestmark = pytest.mark.django_db
ALLOCATIONS = size(12, 50)
LENGTH, GAP, MOVED = 12 * HOUR, Span(3 * HOUR, 4 * HOUR), 4 * HOUR + BATCH_S
LATEST = 2 * HOUR
"""Events are heard of after their hour is rolled up."""
END = moment(LENGTH)
UNPRICED = "a40"
"""A flavor that has no price until one is set for the past."""
KEY_SETS: Sequence[tuple[str, ...]] = [("department", "team"), ("flavor", "offering"), ("allocation",)]
Content = list[tuple[Any, ...]]
Prices = dict[str, list[tuple[datetime, Fraction]]]
"""Prices of each flavor of the catalogue since when, in order."""


@pytest.fixture
def projects(team: Team, other_team: Team) -> list[Project]:
    teams = (team, team, other_team, other_team)
    return [tenants.create_project(SYSTEM, each, f"{each.slug}-{n}", "Simulated") for n, each in enumerate(teams)]


@settings(
    max_examples=size(1, 3),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller seed is no simpler fleet
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_a_random_fleet_adds_up_whatever_is_heard_of_late_twice_or_never(
    projects: list[Project], member: User, seed: int
) -> None:
    drawn = plan.draw(seed, ALLOCATIONS, times(Random(seed)))
    expected = seconds.of_plan(hearing.as_heard(drawn))
    held = {holder(drawn, number): sum(hours, Fraction(0)) for number, hours in expected.held.items() if any(hours)}
    contents = []
    for number, heard in enumerate((drawn, with_other_delays(drawn, seed))):
        with transaction.atomic():
            prices, now = record(heard, projects, member, Random(seed), arrivals=seed + number)
            with clock.frozen(now + timedelta(hours=1)):
                contents.append(checked(expected, held, prices, Random(seed)))
            transaction.set_rollback(True)
    assert contents[0] == contents[1]


def holder(drawn: Plan, number: int) -> str:
    """Return who the ledger says has held what is of this number."""
    jobs = {job.number: job for job in drawn.jobs}
    return events.job_uid(jobs[number]) if number in jobs else str(events.allocation_key(number))


def times(random: Random) -> Times:
    hidden = random.choice([("2g.20gb",), ("",), ("3g.40gb", "4g.40gb")])
    return Times(LENGTH, (GAP,), MOVED, random.randrange(LENGTH), hidden, LATEST)


def with_other_delays(drawn: Plan, seed: int) -> Plan:
    """Return the same events, of which those that are heard of late are so by other times."""
    random = Random(seed)
    uses = [replace(use, late=random.randrange(LATEST) if use.late else 0) for use in drawn.uses]
    jobs = [replace(job, late=random.randrange(LATE) if job.late else 0) for job in drawn.jobs]
    return Plan(drawn.times, uses, jobs, drawn.nodes)


def record(
    drawn: Plan, projects: list[Project], member: User, random: Random, arrivals: int
) -> tuple[Prices, datetime]:
    """Record the fleet, rolled up now and then, with random prices, of which some flavors have none at first; return
    them, and when the fleet is listed afterwards. ``arrivals`` says which events are heard of twice, and when it is
    rolled up.
    """
    events.offer(drawn)
    names, prices = events.flavors(), defaultdict[str, list[tuple[datetime, Fraction]]](list)

    def price(second: int, flavors: Sequence[str], since: datetime) -> None:
        amounts = {name: f"{random.random():.10f}" for name in flavors}
        with clock.frozen(moment(second)):
            events.set_prices(amounts, since)
        for name, amount in amounts.items():
            prices[names[name]].append((since, Fraction(amount)))

    for since in at_random(random):
        price(0, random.sample(sorted(NEW_PRICES), 4), since)
    changes: dict[int, Callable[[], None]] = {
        drawn.times.moved: partial(events.move_team, drawn.times.moved),
        drawn.times.hiding: partial(events.hide, drawn.times.hiding, drawn.times.hidden),
        8 * HOUR: partial(price, 8 * HOUR, [UNPRICED], at_random(random)[0]),
    }
    often = Random(arrivals)
    watched = [s for s in range(BATCH_S - 1, LENGTH, BATCH_S) if hearing.gap_at(s, drawn.times) is None]
    for second in often.sample(watched, 15):
        changes[second] = partial(events.roll_up, second)
    changes[LENGTH + LATEST + HOUR] = partial(events.roll_up, LENGTH + LATEST + HOUR)
    happened = [*events.of_fleet(drawn), *events.of_uses(drawn, projects, member)]
    events.record(happened, arrivals, drawn.times, changes)
    return prices, events.list_again(happened)


def at_random(random: Random) -> list[datetime]:
    return sorted(T0 + timedelta(microseconds=random.randrange(LENGTH * 10**6)) for _ in range(3))


def checked(expected: Result, held: Mapping[str, Fraction], prices: Prices, random: Random) -> Content:
    """Check the ledger and its roll-ups, and return these."""
    edges = [T0, *at_random(random), END]
    check_parts(expected, edges)
    contents = [content()]
    check_sums(held, prices, edges)
    dirty_hours.mark_all(T0, END)
    check_sums(held, prices, edges)
    assert ledger_rollups.rebuild(LOCAL, None, END) == LENGTH // HOUR
    contents.append(content())
    assert contents[0] == contents[1]
    proofs = list(balance_proof.prove_between(LOCAL, None, END))
    assert len(proofs) == LENGTH // HOUR
    assert not [one.failures for one in proofs if not one.balanced]
    return contents[0]


def check_parts(expected: Result, edges: Sequence[datetime]) -> None:
    """Compare the parts of the accounts, and check that the windows between the edges have as much as the whole."""
    whole, *windows = (by_part(*window) for window in ((T0, END), *pairwise(edges)))
    assert whole == {key: sum(hours) for key, hours in expected.parts.items() if any(hours)}
    assert {key: sum((one.get(key, Fraction(0)) for one in windows), Fraction(0)) for key in whole} == whole
    assert all(amount > 0 for (_, category), amount in whole.items() if category != "variance")


def by_part(start: datetime, end: datetime) -> dict[tuple[str, str], Fraction]:
    names = {flavor: name for name, flavor in events.flavors().items()}
    found = hours_by_flavor.by_flavor(start, end)
    assert all(hours.is_balanced for hours in found)
    return {
        (names[one.flavor], category.value): hours for one in found for category, hours in one.parts.items() if hours
    }


def check_sums(held: Mapping[str, Fraction], prices: Prices, edges: Sequence[datetime]) -> None:
    """Compare what each allocation and Job held, and the cost between changes of prices; check that windows that adjoin
    add up.
    """
    sums = ledger.sums([T0, END], ["allocation"], {}, END)
    assert {one.names[0]: one.usage.gpu_hours for one in sums} == held
    check_costs(prices)
    for keys in KEY_SETS:
        total = usages(ledger.sums([T0, END], keys, {}, END))
        added = dict.fromkeys(total, RatedUsage())
        for one in ledger.sums(edges, keys, {}, END):
            added[T0, one.names] += one.usage
        assert added == total


def check_costs(prices: Prices) -> None:
    """Compare the cost of each flavor between two moments at which some price begins, when one price is in force."""
    begins = {since for of_flavor in prices.values() for since, _ in of_flavor}
    for one in ledger.sums([T0, *sorted(begins), END], ["flavor"], {}, END):
        in_force = [amount for since, amount in prices[one.names[0]] if since <= one.window.start]
        hours = one.usage.gpu_hours
        expected = RatedUsage(hours, priced_cost=hours * in_force[-1]) if in_force else RatedUsage(hours, hours)
        assert one.usage == expected


def usages(sums: Sequence[ledger.Sum]) -> dict[tuple[datetime, tuple[str, ...]], RatedUsage]:
    return {(one.window.start, one.names): one.usage for one in sums}


def content() -> Content:
    """Return all rows of the roll-ups before the end, without their own keys."""
    found: Content = []
    for model in (AccountHour, HourTotal, DayTotal):
        columns = [field.attname for field in model._meta.concrete_fields if field.attname != "id"]
        rows = model._default_manager.filter(start__lt=END).order_by()
        found += sorted(rows.values_list(*columns), key=repr)
    return found
