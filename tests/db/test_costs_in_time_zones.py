"""Costs by day and hour of a time zone: the same numbers from roll-ups as from raw intervals."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random

import pytest

from demo import prices
from quotas.costs import rollups
from quotas.costs.calendar import Calendar, zone
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from tests.support import cost_answers
from tests.support.clusters import LOCAL
from tests.support.quotas import cluster, used

pytestmark = pytest.mark.django_db
SUMMER, WINTER = datetime(2026, 10, 23, 22, tzinfo=UTC), datetime(2026, 10, 27, 23, tzinfo=UTC)
"""Four days of Berlin, of which the second has 25 hours."""


def minutes_used(random: Random) -> list[tuple[datetime, datetime, str]]:
    found = []
    for _ in range(40):
        start = SUMMER + timedelta(minutes=random.randrange(-600, 6000))
        found.append(
            (start, start + timedelta(minutes=random.randrange(1, 900)), random.choice(("vision", "language")))
        )
    return found


def summed(
    rows: list[tuple[datetime, datetime, str]], calendar: Calendar, step: Step
) -> dict[tuple[str, str], Fraction]:
    """Return GPU-hours by the local time at which a step begins, minute by minute."""
    found: dict[tuple[str, str], Fraction] = {}
    form = "%Y-%m-%d" if step is Step.DAY else "%Y-%m-%d %H %z"
    for start, end, team in rows:
        minute = max(start, SUMMER)
        while minute < min(end, WINTER):
            key = minute.astimezone(calendar.zone).strftime(form), team
            found[key] = found.get(key, Fraction(0)) + Fraction(1, 60)
            minute += timedelta(minutes=1)
    return found


@pytest.mark.parametrize("step", [Step.DAY, Step.HOUR])
@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "UTC"])
def test_steps_of_a_time_zone_add_up_what_was_used_in_them(name, step):
    cluster()
    prices.price()
    rows, calendar = minutes_used(Random(name)), Calendar(zone(name))
    for start, end, team in rows:
        used(start, end, team=team)
    form = "%Y-%m-%d" if step is Step.DAY else "%Y-%m-%d %H %z"
    expected = summed(rows, calendar, step)
    for is_rolled_up in (False, True):
        if is_rolled_up:
            rollups.roll_up(LOCAL, SUMMER.replace(hour=0), SUMMER.replace(hour=0) + timedelta(days=3, hours=7))
        found = cost_answers.costs(Window(SUMMER, WINTER), ["team"], step=step, calendar=calendar, now=WINTER)
        seen = {
            (row.window.start.astimezone(calendar.zone).strftime(form), row.name): Fraction(row.gpu_hours)
            for row in found.rows
        }
        assert seen.keys() == expected.keys()
        assert all(abs(seen[key] - hours) <= Fraction(1, 10**6) for key, hours in expected.items())
        assert sum(seen.values()) == Fraction(found.gpu_hours)
