"""Filters keep in SQL what they keep in Python."""

from functools import partial
from random import Random

import pytest

from quotas.costs import ledger, rollups
from quotas.costs.filters import And, Comparison, Filter, Operator, Or, beyond, both, may_keep
from quotas.costs.fleet_costs import Readings
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from tests.support import cost_answers
from tests.support.clusters import LOCAL
from tests.support.quotas import cluster, hour, used

pytestmark = pytest.mark.django_db
TEAMS, MEMBERS = ("vision", "vision_2", "vis%on", "language"), ("ada", "grace", "d\\a", "")
ROWS = [{"team": team, "member": member} for team in TEAMS for member in MEMBERS]
PIECES = ("a", "vis", "%", "_", "on", "\\", "", "vision", "ada", "__unallocated__")


def some_filter(random: Random, depth: int = 3) -> Filter:
    if depth == 0 or random.random() < 0.3:
        values = random.choices(PIECES, k=random.randrange(3))
        return Comparison(
            random.choice(("team", "member")), random.choice(list(Operator)), values, random.random() < 0.3
        )
    parts = tuple(some_filter(random, depth - 1) for _ in range(random.randrange(4)))
    return random.choice((And, Or))(parts)


@pytest.fixture
def usage():
    cluster()
    for row in ROWS:
        used(hour(0), hour(1.5), team=row["team"], member=row["member"])


def test_sql_keeps_what_python_keeps(usage):
    for is_rolled_up in (False, True):
        if is_rolled_up:
            rollups.roll_up(LOCAL, hour(0), hour(1))
        for seed in range(60):
            where = some_filter(Random(seed))
            found = cost_answers.costs(Window(hour(0), hour(2)), ["team", "member"], where=where, now=hour(2))
            expected = {f"{row['team']}/{row['member'] or '__unallocated__'}" for row in ROWS if may_keep(where, row)}
            assert {row.name for row in found.rows} == expected, where


def test_what_was_read_with_a_wider_filter_serves_a_narrower_one(usage, django_assert_num_queries):
    edges, window = [hour(0), hour(1), hour(2)], Window(hour(0), hour(2))
    ask = partial(cost_answers.question, window, step=Step.HOUR, now=hour(2))
    for seed in range(20):
        wide, more = some_filter(Random(seed)), some_filter(Random(seed + 100))
        readings = Readings(hour(2), steps=edges)
        readings.held(ask(["member", "team"], where=wide))
        with django_assert_num_queries(0):
            found = readings.held(ask(["team"], where=both(more, wide)))
        expected = ledger.sums(edges, ["team"], both(more, wide), hour(2))
        assert {(one.window, one.names, one.usage) for one in found} == {
            (one.window, one.names, one.usage) for one in expected
        }, (wide, more)


def test_a_filter_that_may_keep_more_is_beyond_none():
    team, member = Comparison("team", Operator.EQUALS, ["vision"]), Comparison("member", Operator.EQUALS, ["ada"])
    assert beyond(Or((team, member)), team) is None
    assert beyond(member, both(team, member)) is None
    assert beyond(both(team, member), team) == And((member,))
