"""GET /costs by node: of GPUs that Kubernetes names all parts, and of what a device plugin counts a row without one."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from portal.core import clock
from portal.tenants.models import Team
from quotas.costs import rollups
from quotas.metering import foreign
from quotas.metering.foreign import Start, Use
from quotas.metering.units import RESOURCE, FoundUnit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, hold_pod, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"
WINDOW = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"
COLUMNS = ("cost", "idle_cost", "stranded_cost", "unavailable_cost", "unmanaged_cost", "variance")
NO_NODE = "__unallocated__"


@pytest.fixture(autouse=True)
def at_ten() -> Iterator[None]:
    with clock.frozen(hour(10)):
        yield


@pytest.fixture(params=["from the ledger", "rolled up"])
def auditor(request: pytest.FixtureRequest, team: Team, other_team: Team) -> Client:
    """Record 10 hours of 2 h100 (3.20), and of 8 l40s (1.10) that a device plugin counts on two nodes."""
    fleet(team, other_team)
    record({**RESOURCES, **GPUS}, 0)
    hold_gpu("gpu-0", 0, 4)
    use_gpu_without_allocation("gpu-1", 0, 5)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS if unit.name == "gpu-0"}, 6)
    used(hour(0), hour(10), 2)
    hold_pod("l40s-1", 0, 1)
    _use_l40s_without_allocation(0, 2)
    if request.param == "rolled up":
        rollups.roll_up(LOCAL, hour(0), hour(7))
    return client(person(platform_role="auditor"))


def _use_l40s_without_allocation(start: float, end: float) -> None:
    slot, uid = f"{LOCAL}/pod:{uuid4()}/nvidia.com/gpu", str(uuid4())
    use = Use(slot, "l40s-0", RESOURCE, "nvidia.com/gpu", 1, "Pod", "trainer", uid, "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(start), 1, estimated=False)])
    foreign.end(LOCAL, uid, [slot], hour(end), 2, estimated=False)


def rows(api: Client, query: str) -> dict[str, dict[str, Any]]:
    answer = api.get(f"{URL}?window={WINDOW}&{query}")
    assert answer.status_code == 200, answer.content
    return {row["name"]: row for row in answer.json()["results"]}


def amounts(row: dict[str, Any]) -> dict[str, str]:
    """Return the amounts of money without those of zero."""
    return {name: row[name] for name in COLUMNS if Decimal(row[name])}


def test_a_node_has_what_was_on_it_and_a_row_without_node_what_is_only_counted(auditor: Client) -> None:
    found = rows(auditor, "aggregate=node")
    assert {name: amounts(row) for name, row in found.items()} == {
        "h100-0": {
            "cost": "12.8000",
            "unmanaged_cost": "16.0000",
            "unavailable_cost": "12.8000",
            "idle_cost": "22.4000",
        },
        "l40s-0": {"unmanaged_cost": "2.2000"},
        "l40s-1": {"cost": "1.1000"},
        NO_NODE: {"cost": "22.0000", "idle_cost": "62.7000"},
    }


def test_nodes_add_up_to_the_flavors_and_to_the_price_of_the_capacity(auditor: Client) -> None:
    by_flavor, by_node = (rows(auditor, f"aggregate={keys}") for keys in ("flavor", "flavor,node"))
    for name in COLUMNS:
        for flavor in ("h100", "l40s"):
            of_nodes = [Decimal(row[name]) for row in by_node.values() if row["properties"]["flavor"] == flavor]
            assert sum(of_nodes) == Decimal(by_flavor[flavor][name])
    assert sum(Decimal(row[name]) for row in by_node.values() for name in COLUMNS) == 20 * Decimal(
        "3.2"
    ) + 80 * Decimal("1.1")


def test_a_filter_by_node_keeps_what_nobody_held_of_it(auditor: Client) -> None:
    found = rows(auditor, 'aggregate=flavor&filter=node:"h100-0"')
    assert {name: row["idle_cost"] for name, row in found.items()} == {"h100": "22.4000"}
    found = rows(auditor, f"aggregate=flavor&filter=node:{NO_NODE}")
    assert {name: (row["cost"], row["idle_cost"]) for name, row in found.items()} == {"l40s": ("22.0000", "62.7000")}


def test_other_keys_beside_the_node_have_a_row_of_what_nobody_held(auditor: Client) -> None:
    found = rows(auditor, "aggregate=node,team")
    assert amounts(found["h100-0/vision"]) == {"cost": "12.8000"}
    assert found["h100-0/__idle__"]["idle_cost"] == "22.4000"
    assert amounts(found[f"{NO_NODE}/vision"]) == {"cost": "22.0000"}
    assert amounts(found[f"{NO_NODE}/__idle__"]) == {"idle_cost": "62.7000"}


def test_a_member_sees_nodes_of_their_team_alone(auditor: Client, team: Team) -> None:
    hold_gpu("gpu-1", 6, 7, team="language", node="h100-0")
    found = rows(client(person(team)), "aggregate=node")
    assert {name: amounts(row) for name, row in found.items()} == {
        "h100-0": {"cost": "12.8000"},
        "l40s-1": {"cost": "1.1000"},
        NO_NODE: {"cost": "22.0000"},
    }
