"""The questions people ask of costs, over REST with permission, paging and JSON, against SQL by hand and json.dumps.

Part of ``bench.rollups``, on its year of usage. REST answers in process, through all middleware.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from bench.catalogue import Call
from bench.statistics import compare
from bench.usage_year import END, MONTHS, execute
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope
from quotas.metering.models import UsageInterval
from tests.support.people import person

AFTER = END + timedelta(days=1)
TEAM = "team-3"
DECEMBER = (MONTHS[-2], END)
_TOTALS = """
    SELECT start, {names}, sum(amount / denominator) / 3600000000, sum(amount * price / denominator) / 3600000000
    FROM (SELECT {step} AS start, {names}, amount, denominator, price FROM metering_daytotal
          WHERE start >= %(start)s AND start < %(end)s AND category = 'held' AND {where}) AS day
    GROUP BY start, {names} ORDER BY 1
"""
_INTERVALS = """
    SELECT key, start, "end", offering, count, source_start, source_end, hours, hours * price
    FROM (SELECT *, extract(epoch FROM "end" - start) * count * gpu_share_numerator / gpu_share_denominator / 3600
                    AS hours
          FROM metering_usageinterval WHERE holder_id = %(holder)s AND team = %(team)s) AS held
    JOIN (SELECT flavor.name AS flavor, max(per_gpu_hour) AS price
          FROM costs_price JOIN catalog_flavor AS flavor ON flavor.id = flavor_id GROUP BY name) AS priced
        USING (flavor)
    ORDER BY start
"""


class Question(NamedTuple):
    """A question, the client that asks it, and the statement that answers it by hand."""

    client: Client
    path: str
    statement: str
    values: dict[str, Any]


def measure(rounds: int, series: Callable[[Call, Call, int], tuple[list[float], list[float]]]) -> dict[str, Any]:
    """Return how long the questions take over REST and by hand, by name; raise if the sums differ."""
    with clock.frozen(AFTER), override_settings(API_REQUESTS_PER_MINUTE=1_000_000):
        return {name: _measure(question, rounds, series) for name, question in _questions().items()}


def _questions() -> dict[str, Question]:
    department = tenants.create_department(SYSTEM, "bench", "Bench")
    member, auditor = person(tenants.create_team(SYSTEM, department, TEAM, TEAM)), person(platform_role="auditor")
    api, all_teams = (
        Client(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {_token(user)}"})
        for user in (member, auditor)
    )
    holder = UsageInterval.objects.filter(team=TEAM).order_by("key").values_list("holder_id", flat=True)[0]
    month, year = ({"start": start, "end": end, "team": TEAM} for start, end in (DECEMBER, (MONTHS[0], END)))
    return {
        "my team, month, offering x day": Question(
            api,
            f"/api/v1/costs?window={_window(*DECEMBER)}&aggregate=offering&accumulate=day",
            _TOTALS.format(step="start", names="offering", where="team = %(team)s"),
            month,
        ),
        "all teams, 12 months": Question(
            all_teams,
            f"/api/v1/costs?window={_window(MONTHS[0], END)}&aggregate=team&accumulate=month&idle=hide",
            _TOTALS.format(step="date_trunc('month', start)", names="team", where="TRUE"),
            year,
        ),
        "one allocation": Question(
            api, f"/api/v1/costs/allocations/{holder}", _INTERVALS, {"holder": holder, "team": TEAM}
        ),
    }


def _measure(
    question: Question, rounds: int, series: Callable[[Call, Call, int], tuple[list[float], list[float]]]
) -> dict[str, Any]:
    def ours() -> dict[str, Any]:
        answer = question.client.get(question.path)
        if answer.status_code != 200:
            raise RuntimeError(f"{question.path}: {answer.status_code} {answer.content.decode()[:300]}")
        found: dict[str, Any] = json.loads(answer.content)
        return found

    def bare() -> tuple[list[Any], int]:
        rows = execute(question.statement, question.values)
        return rows, len(json.dumps({"results": [list(row) for row in rows]}, default=str))

    with CaptureQueriesContext(connection) as caught:
        found = ours()
    rows, _ = bare()
    by_hand = sum((row[-2] for row in rows), Decimal(0))
    if abs(Decimal(found["gpu_hours"]) - by_hand) > Decimal("0.00001") or len(found["results"]) != len(rows):
        raise RuntimeError(f"{question.path} has other sums than the query by hand")
    return {
        **compare(*series(ours, bare, rounds)).document(),
        "queries": len(caught),
        "answer": len(found["results"]),
    }


def _token(user: Any) -> str:
    _, secret = tenants.issue_token(SYSTEM, user, "bench", [Scope.READ], timedelta(days=1))
    return secret


def _window(start: datetime, end: datetime) -> str:
    return f"{start:%FT%TZ},{end:%FT%TZ}"
