"""Nobody learns of another team's use from any answer about costs: two worlds that differ in nothing else are alike."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants.models import Project, Team
from tests.support.people import client, person
from tests.support.two_worlds import FILTERS, NOW, OTHERS, OWN, ROLES, WINDOW, another_world, asked_by, one_world

pytestmark = pytest.mark.django_db
REST = [
    *("costs?limit=1&aggregate=team", "costs?window=lastmonth&aggregate=team,flavor"),
    *(f"costs/forecast?filter={text}" for text in FILTERS),
    *("costs/forecast", "costs/forecast?department=research", "costs/forecast?team=language"),
    *("costs/forecast?project=language-train", "costs/forecast?member=li"),
    *(f"costs/allocations/{holder}" for holder in (OWN, OTHERS)),
    *("costs/assets", "costs/assets?aggregate=node", "costs/proof", "costs/savings", "costs/savings?hours=1"),
    *("prices", "prices/export", "bills", "shared-costs", "node-costs", "node-terms"),
    *("saved-views", "saved-views?team=language", "saved-views/1"),
]
BY_TEAM = f"costs?{WINDOW}&aggregate=team"
BY_IDLE = f"{BY_TEAM}&idle="
OF_THE_REQUEST = re.compile(rb'"request_id": ?"[^"]*"|"instance": ?"[^"]*"')


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team, project: Project) -> Iterator[None]:
    one_world(team, other_team)
    with clock.frozen(NOW):
        yield


def rest(api: APIClient, paths: Sequence[str]) -> dict[str, Any]:
    found = {}
    for path in paths:
        answer: Any = api.get(f"/api/v1/{path}")
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        found[path] = answer.status_code, OF_THE_REQUEST.sub(b"", body), answer.get("ETag")
    return found


@pytest.mark.parametrize("role", ROLES)
def test_rest_answers_are_alike(team: Team, other_team: Team, role: str) -> None:
    api, stranger = client(person(team, role)), person(other_team)
    paths = [*REST, *(f"costs{path}?{WINDOW}&{query}" for path in ("", "/export") for query in asked_by(role))]
    before = rest(api, paths)
    another_world(other_team, stranger)
    after = rest(api, paths)
    assert [path for path in paths if before[path] != after[path]] == []
    statuses = {path: before[path][0] for path in paths}
    assert {statuses[f"costs/allocations/{holder}"] for holder in (OWN, OTHERS)} == {200, 404}
    assert set(statuses.values()) == {200, 400, 403, 404}
    modes = {path.partition("&idle=")[2]: status for path, status in statuses.items() if path.startswith(BY_IDLE)}
    assert modes.items() <= {"hide": 200, "owner": 200, "separate": 403, "share": 403}.items()
    assert modes
    assert all(b"language" not in body for path, (status, body, _) in after.items() if status == 200)


def test_who_sees_the_fleet_sees_the_difference(team: Team, other_team: Team) -> None:
    api, stranger = client(person(platform_role="auditor")), person(other_team)
    paths = [*REST, BY_TEAM]
    before = rest(api, paths)
    another_world(other_team, stranger)
    after = rest(api, paths)
    differ = {path for path in paths if before[path] != after[path]}
    assert differ >= {BY_TEAM, "costs/forecast", f"costs/allocations/{OTHERS}", "costs/assets"}
