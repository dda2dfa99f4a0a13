"""GET /costs/assets, for platform staff, and GET /costs/allocations/{id}."""

from decimal import Decimal
from uuid import uuid4

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.costs import rollups, services
from quotas.metering.units import FoundUnit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.hold_pods import pods, recorded_since
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
ASSETS, ALLOCATIONS = "/api/v1/costs/assets", "/api/v1/costs/allocations"
DAY = "window=2026-11-02,2026-11-03"
PARTS = ("held", "unmanaged", "unavailable", "stranded", "idle", "variance")


@pytest.fixture(autouse=True)
def at_ten():
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def member(team, other_team):
    """Record 10 hours of 8 l40s, of which two holders have some, and of 2 h100, of which one is used, one fails."""
    fleet(team, other_team)
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0), hour(10), 2)
    used(hour(0), hour(4), team="language", project="language-train")
    use_gpu_without_allocation("gpu-1", 0, 5)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS if unit.name == "gpu-0"}, 6)
    return person(team)


@pytest.fixture
def auditor(member):
    return client(person(platform_role="auditor"))


def rows(api, query=""):
    answer = api.get(f"{ASSETS}?{DAY}&{query}")
    assert answer.status_code == 200, answer.content
    return {(row["type"], row["node"], row["name"]): row for row in answer.json()["results"]}


@pytest.mark.parametrize("is_rolled_up", [False, True])
def test_each_gpu_and_resource_has_its_parts(auditor, is_rolled_up):
    if is_rolled_up:
        rollups.roll_up(LOCAL, hour(0), hour(7))
    found = rows(auditor)
    counted = found["resource", "", "nvidia.com/gpu"]
    assert [counted[name] for name in ("capacity_gpu_hours", "held", "idle", "occupancy")] == [
        *("80.000000", "24.000000", "56.000000", "0.3000")
    ]
    assert [(one["team"], one["gpu_hours"], one["cost"]) for one in counted["holders"]] == [
        ("vision", "20.000000", "22.0000"),
        ("language", "4.000000", "4.4000"),
    ]
    gpu = next(row for (kind, _, name), row in found.items() if (kind, name) == ("gpu", "gpu-1"))
    assert (gpu["unmanaged"], gpu["idle"], gpu["holders"], gpu["occupancy"]) == (
        *("5.000000", "5.000000", [], "0.0000"),
    )


def test_the_parts_of_an_asset_add_up_to_its_capacity(auditor):
    for row in rows(auditor).values():
        assert sum(float(row[name]) for name in PARTS) == float(row["capacity_gpu_hours"])


def test_gpus_are_added_up_by_node(auditor):
    gpus = [row for (kind, _, _), row in rows(auditor).items() if kind == "gpu"]
    [node] = [row for (kind, _, _), row in rows(auditor, "aggregate=node").items() if kind == "node"]
    assert len(gpus) == len(GPUS) > 1
    for name in PARTS:
        assert float(node[name]) == sum(float(row[name]) for row in gpus)


def test_assets_are_filtered_by_cluster_flavor_and_node(auditor):
    assert {kind for kind, _, _ in rows(auditor, "filter=flavor:l40s")} == {"resource"}
    assert rows(auditor, 'filter=cluster:"nowhere"') == {}
    answer = auditor.get(f"{ASSETS}?filter=team:vision")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["filter"])
    assert auditor.get(f"{ASSETS}?aggregate=pod").status_code == 400


def test_a_window_of_which_too_much_is_not_rolled_up_is_refused(auditor):
    used(hour(-24 * 30), hour(-24 * 29))
    answer = auditor.get(f"{ASSETS}?window=30d")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["window"])


def test_nobody_else_sees_assets(member):
    assert client(member).get(ASSETS).status_code == 403


def test_an_allocation_has_its_intervals_with_their_evidence(member):
    id_ = uuid4()
    used(hour(0), hour(1), 2, id_, labels={"app": "train"})
    used(hour(4), None, 1, id_)
    used(hour(4), None, 1)
    body = client(member).get(f"{ALLOCATIONS}/{id_}").json()
    assert (body["gpu_hours"], body["cost"], body["unpriced_gpu_hours"]) == ("8.000000", "8.8000", "0")
    names = ("start", "end", "count", "gpu_share", "gpu_hours", "cost", "labels")
    assert [tuple(row[name] for name in names) for row in body["results"]] == [
        ("2026-11-02T00:00:00Z", "2026-11-02T01:00:00Z", 2, "1/1", "2.000000", "2.2000", {"app": "train"}),
        ("2026-11-02T04:00:00Z", None, 1, "1/1", "6.000000", "6.6000", {}),
    ]
    assert [row["evidence"] for row in body["results"]] == [
        {"start": {"kind": "test"}, "end": {"kind": "test"}},
        {"start": {"kind": "test"}, "end": None},
    ]


def test_intervals_of_an_allocation_that_held_nothing_are_none(member, project):
    row = allocate(member, project)
    body = client(member).get(f"{ALLOCATIONS}/{row.pk}").json()
    assert (body["results"], body["cost"]) == ([], "0.0000")


def test_intervals_of_another_team_are_not_there(member, other_team):
    id_ = uuid4()
    used(hour(0), hour(1), 1, id_, team="language", project="language-train")
    for user, status in ((member, 404), (person(other_team), 200), (person(platform_role="auditor"), 200)):
        assert client(user).get(f"{ALLOCATIONS}/{id_}").status_code == status
    assert client(member).get(f"{ALLOCATIONS}/{uuid4()}").status_code == 404


def test_of_an_allocation_whose_project_was_moved_each_team_sees_its_own_time(member, other_team):
    id_ = uuid4()
    used(hour(0), hour(1), 1, id_)
    used(hour(1), hour(4), 1, id_, team="language")
    hours = [client(user).get(f"{ALLOCATIONS}/{id_}").json()["gpu_hours"] for user in (member, person(other_team))]
    assert hours == ["1.000000", "3.000000"]


def test_named_devices_are_charged_as_costs_say(member, auditor):
    row = hold_gpu("gpu-0", 1, 5)
    body = auditor.get(f"{ALLOCATIONS}/{row.holder_id}").json()
    query = f"{DAY}&aggregate=allocation&filter=allocation:{row.holder_id}"
    [same] = auditor.get(f"/api/v1/costs?{query}").json()["results"]
    assert (body["gpu_hours"], body["cost"]) == (same["gpu_hours"], same["cost"])


def unused(user, id_, query=""):
    body = client(user).get(f"{ALLOCATIONS}/{id_}?{query}").json()
    days = [tuple(day.values()) for day in body["unused_by_day"]]
    return body["unused_gpu_hours"], body["unused_cost"], days


def test_of_an_allocation_with_pods_half_of_the_time_half_is_unused(member):
    recorded_since(0)
    id_ = uuid4()
    used(hour(0), None, 2, id_)
    pods(id_, 0, 2)
    pods(id_, 4, 7)
    assert unused(member, id_) == ("10.000000", "11.0000", [("2026-11-02", "10.000000", "11.0000")])
    pods(id_, 9, None)
    assert unused(member, id_)[:2] == ("8.000000", "8.8000")


def test_an_allocation_without_any_pod_is_unused_and_its_days_are_of_the_time_zone(member):
    recorded_since(0)
    id_ = uuid4()
    used(hour(0), None, 1, id_)
    days = [("2026-11-01", "4.000000", "4.4000"), ("2026-11-02", "6.000000", "6.6000")]
    assert unused(member, id_, "timezone=America/Halifax") == ("10.000000", "11.0000", days)
    answer = client(member).get(f"{ALLOCATIONS}/{id_}?timezone=Mars")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["timezone"])


def test_an_allocation_with_a_pod_all_the_time_has_nothing_unused(member):
    recorded_since(0)
    id_ = uuid4()
    used(hour(1), hour(3), 1, id_)
    pods(id_, 1, 3)
    assert unused(member, id_)[:2] == ("0.000000", "0.0000")


def test_before_pods_are_recorded_it_is_not_known_what_was_unused(member):
    id_ = uuid4()
    used(hour(-30), hour(4), 1, id_)
    days = ["2026-10-31", "2026-11-01", "2026-11-02"]
    assert unused(member, id_) == (None, None, [(day, None, None) for day in days])
    recorded_since(0)
    assert unused(member, id_) == (
        None,
        None,
        [*((day, None, None) for day in days[:2]), ("2026-11-02", "4.000000", "4.4000")],
    )


def test_of_a_job_what_it_reserved_and_no_pod_used_is_unused(member):
    id_ = uuid4()
    used(hour(0), hour(1), 2, id_, member="", unused=True)
    used(hour(1), hour(5), 2, id_, member="")
    assert unused(member, id_)[:2] == ("2.000000", "2.2000")


def test_of_a_moved_project_each_team_sees_what_was_unused_in_its_own_time(member, other_team):
    recorded_since(0)
    id_ = uuid4()
    used(hour(0), hour(2), 1, id_)
    used(hour(2), hour(5), 1, id_, team="language")
    pods(id_, 1, 3)
    assert [unused(user, id_)[0] for user in (member, person(other_team))] == ["1.000000", "2.000000"]


def test_the_slices_of_one_gpu_are_unused_as_far_as_they_are_charged(member, auditor):
    recorded_since(0)
    row = hold_gpu("gpu-0", 1, 5)
    pods(row.holder_id, 1, 2)
    body = auditor.get(f"{ALLOCATIONS}/{row.holder_id}").json()
    assert Decimal(body["unused_gpu_hours"]) == Decimal(body["gpu_hours"]) * 3 / 4
    assert Decimal(body["unused_cost"]) == Decimal(body["cost"]) * 3 / 4


def test_what_runs_has_the_cost_at_its_end_by_the_prices_that_are_known(member, project):
    with clock.frozen(hour(8)):
        row = allocate(member, project, ends_at=hour(14).isoformat())
    used(hour(8), hour(9), 1, row.pk)
    used(hour(9), None, 2, row.pk)
    services.set_price(SYSTEM, "l40s", "2", "EUR", hour(12), "test")
    body = client(member).get(f"{ALLOCATIONS}/{row.pk}").json()
    assert (body["cost"], body["ends_at"]) == ("3.3000", "2026-11-02T14:00:00Z")
    assert body["cost_at_end"] == "15.7000"  # 7 GPU-hours at 1.10, 4 at 2


@pytest.mark.parametrize("is_open", [True, False], ids=["of a Job", "of what has ended"])
def test_the_cost_at_the_end_is_not_known(member, is_open):
    id_ = uuid4()
    used(hour(8), None if is_open else hour(9), 1, id_)
    body = client(member).get(f"{ALLOCATIONS}/{id_}").json()
    assert (body["ends_at"], body["cost_at_end"]) == (None, None)
