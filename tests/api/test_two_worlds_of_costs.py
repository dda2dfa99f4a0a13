"""Nobody learns of another team's use from any answer about costs: two worlds that differ in nothing else are alike."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Pool
from quotas.costs import bills, rollups, saved_views
from quotas.limits import services as limits
from quotas.metering.hours import DAY
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import T0, hour, used

pytestmark = pytest.mark.django_db
NOW = T0 + 3 * DAY + DAY / 4
OWN, OTHERS = UUID(int=1), UUID(int=2)
WINDOW = "window=2026-10-30,2026-11-06"
FILTERS = (
    'team:"language"',
    'team!:"vision"',
    'member~:"l"|label[app]:"secret"',
    'flavor:"l40s"',
    "colour:x",
    'team:"',
)
COSTS = [
    *(f"aggregate={keys}" for keys in ("all", "team", "department,flavor", "cluster,node", "allocation", "label:app")),
    *("aggregate=team&accumulate=day", "aggregate=namespace,kind&compare=previous", "cost=monthly&aggregate=offering"),
    *(f"aggregate=team&idle={mode}" for mode in ("hide", "owner", "separate", "share")),
    *(f"aggregate=project,member&filter={text}" for text in FILTERS),
]
REST = [
    *(f"costs{path}?{WINDOW}&{query}" for path in ("", "/export") for query in COSTS),
    *("costs?limit=1&aggregate=team", "costs?window=lastmonth&aggregate=team,flavor"),
    *(f"costs/forecast?filter={text}" for text in FILTERS),
    *("costs/forecast", "costs/forecast?department=research", "costs/forecast?team=language"),
    *("costs/forecast?project=language-train", "costs/forecast?member=li"),
    *(f"costs/allocations/{holder}" for holder in (OWN, OTHERS)),
    *("costs/assets", "costs/assets?aggregate=node", "costs/proof", "costs/savings", "costs/savings?hours=1"),
    *("prices", "prices/export", "bills", "shared-costs", "node-costs", "node-terms"),
    *("saved-views", "saved-views?team=language", "saved-views/1"),
]
OF_THE_REQUEST = re.compile(rb'"request_id": ?"[^"]*"|"instance": ?"[^"]*"')


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team, project: Project) -> Iterator[None]:
    """Record 8 l40s since September, of which each team has 4; a bill, and fixed costs by weight and evenly."""
    fleet(team, other_team)
    record(RESOURCES, -40 * 24)
    operator = person(platform_role="operator")
    with clock.frozen(hour(-40 * 24)):
        for holder in (team, other_team):
            limits.set_limit("operator", holder, Pool.objects.get(key="l40s/gpu"), 4, borrowing=4)
    use("vision", OWN)
    with clock.frozen(NOW):
        bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "9000")
        bills.set_shared_cost(operator, "network", date(2026, 10, 1), "100", "weighted")
        bills.set_shared_cost(operator, "support", date(2026, 10, 1), "50", "even")
        rollups.roll_up(LOCAL, hour(-33 * 24), hour(72))
        yield


def use(team: str, holder: UUID) -> None:
    """Use l40s of a team for weeks, with a hold that runs."""
    more: dict[str, Any] = {"team": team, "project": f"{team}-train", "namespace": f"{team}-train", "member": team[:2]}
    for day in range(-20, 3):
        used(hour(24 * day), hour(24 * day + 9), 2, labels={"app": "secret" if team == "language" else "train"}, **more)
    used(hour(70), None, 1, holder, **more)


def rest(api: APIClient, paths: Sequence[str]) -> dict[str, Any]:
    found = {}
    for path in paths:
        answer: Any = api.get(f"/api/v1/{path}")
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        found[path] = answer.status_code, OF_THE_REQUEST.sub(b"", body), answer.get("ETag")
    return found


def another_world(other_team: Team, stranger: User) -> None:
    """Let the other team use GPUs, save a view, and run a hold."""
    use("language", OTHERS)
    saved_views.save(stranger, "secret", "aggregate=member", other_team)
    rollups.roll_up(LOCAL, hour(-33 * 24), hour(72))


@pytest.mark.parametrize("role", ["viewer", "lead"])
def test_rest_answers_are_alike(team: Team, other_team: Team, role: str) -> None:
    api, stranger = client(person(team, role)), person(other_team)
    before = rest(api, REST)
    another_world(other_team, stranger)
    after = rest(api, REST)
    assert [path for path in REST if before[path] != after[path]] == []
    statuses = {path: before[path][0] for path in REST}
    assert {statuses[f"costs/allocations/{holder}"] for holder in (OWN, OTHERS)} == {200, 404}
    assert set(statuses.values()) == {200, 400, 403, 404}
    assert [statuses[f"costs?{WINDOW}&aggregate=team&idle={mode}"] for mode in ("owner", "separate")] == [200, 403]
    assert all(b"language" not in body for path, (status, body, _) in after.items() if status == 200)


def test_who_sees_the_fleet_sees_the_difference(team: Team, other_team: Team) -> None:
    api, stranger = client(person(platform_role="auditor")), person(other_team)
    before = rest(api, REST)
    another_world(other_team, stranger)
    after = rest(api, REST)
    differ = {path for path in REST if before[path] != after[path]}
    assert differ >= {f"costs?{WINDOW}&aggregate=team", "costs/forecast", f"costs/allocations/{OTHERS}", "costs/assets"}
