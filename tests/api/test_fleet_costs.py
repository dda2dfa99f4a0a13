"""What nobody is charged for, in /costs: for platform staff, and as if it were nothing for everybody else."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal.core import clock
from portal.tenants.models import Team, User
from quotas.costs import rollups
from quotas.costs.models import Price
from quotas.metering.units import FoundUnit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"
WINDOW = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"
NONE = dict.fromkeys(("idle_cost", "stranded_cost", "unavailable_cost", "unmanaged_cost", "variance"), "0")
UNPRICED = "unpriced_idle_gpu_hours"


@pytest.fixture(autouse=True)
def at_ten() -> Iterator[None]:
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def member(team: Team, other_team: Team) -> User:
    """Record 10 hours of 8 l40s at 1.10, 2 of them held, and of 2 h100, of which one fails and one is used."""
    fleet(team, other_team)
    Price.objects.filter(flavor__name="h100").delete()
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0), hour(10), 2)
    use_gpu_without_allocation("gpu-1", 0, 5)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS if unit.name == "gpu-0"}, 6)
    return person(team)


@pytest.fixture
def auditor(member: User) -> Client:
    return client(person(platform_role="auditor"))


def rows(api: Client, query: str) -> dict[str, Any]:
    return {row["name"]: row for row in api.get(f"{URL}?window={WINDOW}&{query}").json()["results"]}


def columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of what nobody is charged for, without those of zero."""
    return {name: row[name] for name in NONE if row[name] != "0"}


def test_staff_see_what_nobody_is_charged_for_by_flavor(auditor: Client) -> None:
    found = rows(auditor, "aggregate=flavor")
    assert (found["l40s"]["cost"], columns(found["l40s"])) == ("22.0000", {"idle_cost": "66.0000"})


def test_it_is_the_same_when_it_is_rolled_up(auditor: Client) -> None:
    queries = [f"aggregate={keys}&accumulate=false" for keys in ("flavor", "cluster", "team", "flavor,member")]
    before = [rows(auditor, query) for query in queries]
    rollups.roll_up(LOCAL, hour(0), hour(7))
    assert [rows(auditor, query) for query in queries] == before


def test_what_has_no_price_has_no_cost(auditor: Client) -> None:
    found = rows(auditor, "aggregate=flavor")["h100"]
    assert (found["gpu_hours"], found["cost"]) == ("0.000000", "0.0000")
    assert columns(found) == {"idle_cost": None, "unavailable_cost": None, "unmanaged_cost": None}


def test_other_keys_have_it_in_a_row_of_its_own(auditor: Client) -> None:
    found = rows(auditor, "aggregate=team")
    assert (columns(found["vision"]), found["__idle__"]["cost"]) == ({}, "0.0000")
    assert found["__idle__"]["idle_cost"] == "66.0000"
    assert found["__idle__"]["unpriced_idle_gpu_hours"] == rows(auditor, "aggregate=flavor")["h100"][UNPRICED] != "0"
    assert rows(auditor, "aggregate=flavor")["l40s"][UNPRICED] == found["vision"][UNPRICED] == "0"
    assert {"l40s/vision", "l40s/__idle__", "h100/__idle__"} == set(rows(auditor, "aggregate=flavor,team"))


def test_a_filter_by_flavor_keeps_its_part_and_one_by_team_none(auditor: Client) -> None:
    assert set(rows(auditor, "aggregate=cluster,flavor&filter=flavor:l40s")) == {"local/l40s"}
    assert columns(rows(auditor, "aggregate=flavor&filter=team:vision")["l40s"]) == {}


def test_idle_cost_can_be_hidden(auditor: Client) -> None:
    assert [columns(row) for row in rows(auditor, "aggregate=flavor&idle=hide").values()] == [{}]


@pytest.mark.parametrize("keys", ["flavor", "cluster", "team", "flavor,team"])
def test_members_learn_nothing_of_what_others_use(member: User, keys: str) -> None:
    before = rows(client(member), f"aggregate={keys}")
    hold_gpu("gpu-1", 7, 10, team="language")
    used(hour(0), hour(10), 6, team="language")
    assert rows(client(member), f"aggregate={keys}") == before
    assert [columns(row) for row in before.values()] == [{}]
    assert [row[UNPRICED] for row in before.values()] == ["0"]


@pytest.mark.usefixtures("member")
def test_it_is_unknown_while_more_than_a_week_is_not_rolled_up() -> None:
    with clock.frozen(hour(24 * 8)):
        answer = (
            client(person(platform_role="auditor")).get(f"{URL}?window=2026-11-02,2026-11-10&aggregate=flavor").json()
        )
    [row] = [row for row in answer["results"] if row["name"] == "l40s"]
    assert columns(row) == dict.fromkeys(NONE)
