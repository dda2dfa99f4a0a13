"""Random questions about costs: raw intervals, roll-ups, REST, CSV and the command line give one number."""

import csv
import json
from datetime import datetime
from fractions import Fraction
from io import StringIO
from random import Random
from typing import Any

import pytest

from demo import prices
from quotas.costs import rollups
from tests.support import cost_questions
from tests.support.clusters import LOCAL
from tests.support.cost_questions import DAYS, Question
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import cluster, hour
from tests.support.sizes import size

QUESTIONS = size(60, 200)
LAST_DIGIT = Fraction(1, 10_000)
"""Of money. A row is rounded up or down, so that all add up to the rounded sum: less than two units off."""


@pytest.fixture
def rows(team, other_team, settings):
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    fleet(team, other_team)
    cluster()
    prices.price()
    found = cost_questions.use(Random(16), 60)
    for start, end in ((0, 30), (31, 90), (100, 24 * DAYS)):
        rollups.roll_up(LOCAL, hour(start), hour(end))
    return found


def compared(asked: Question, expected, results) -> Fraction:
    """Compare rows with what they should be, and return the sum of their costs."""
    seen = {}
    for row in results:
        start = datetime.fromisoformat(row["window"]["start"])
        seen[cost_questions.step_of(asked, start), row["name"]] = Fraction(row["gpu_hours"]), Fraction(row["total"])
    assert seen.keys() == expected.keys(), asked.query
    for key, (hours, cost) in expected.items():
        assert abs(seen[key][0] - hours) < 2 * LAST_DIGIT / 100, (asked.query, key)
        assert abs(seen[key][1] - cost) < 2 * LAST_DIGIT, (asked.query, key)
    return sum((cost for _, cost in seen.values()), Fraction(0))


def named(lines, keys):
    """Return lines of CSV as rows of REST."""
    return [
        {
            **line,
            "window": {"start": line["window_start"], "end": line["window_end"]},
            "name": "/".join(line[key].removeprefix("'") for key in keys),
        }
        for line in lines
    ]


@pytest.mark.django_db
def test_rest_and_csv_say_what_the_intervals_do(rows, team):
    member, auditor = client(person(team)), client(person(platform_role="auditor"))
    for seed in range(QUESTIONS):
        asked = cost_questions.question(Random(seed))
        for api, visible in ((member, [row for row in rows if row.values["team"] == "vision"]), (auditor, rows)):
            expected = cost_questions.answer(asked, visible)
            body = page = api.get("/api/v1/costs", asked.query | {"idle": "hide"}).json()
            while page["next"]:
                page = api.get(page["next"]).json()
                body["results"] += page["results"]
            total = compared(asked, expected, body["results"])
            exact = sum((cost for _, cost in expected.values()), Fraction(0))
            assert total == Fraction(body["total"]), asked.query
            assert abs(total - exact) <= LAST_DIGIT / 2, asked.query
        exported: Any = api.get("/api/v1/costs/export", asked.query | {"idle": "hide"})
        lines = list(csv.DictReader(StringIO(b"".join(exported.streaming_content).decode())))
        assert compared(asked, expected, named(lines, asked.keys)) == total


@pytest.mark.django_db(transaction=True)
def test_the_command_says_what_the_intervals_do(run, rows):
    visible = [row for row in rows if row.values["team"] == "vision"]
    for seed in range(QUESTIONS):
        asked = cost_questions.question(Random(seed))
        words = [part for name, value in asked.query.items() if value for part in (f"--{name}", value)]
        form = ("json", "csv")[seed % 2]
        printed = run("costs", *words, "-o", form).stdout
        lines = (
            json.loads(printed)["results"] if form == "json" else named(csv.DictReader(StringIO(printed)), asked.keys)
        )
        compared(asked, cost_questions.answer(asked, visible), lines)
