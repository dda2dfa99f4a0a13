"""MIG and shared slices over REST: constraints, sharing, warnings, isolation, devices, and what fits now."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from allocations.models import Allocation, MirrorObject
from portal.clusters.models import Cluster
from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor, Pool
from quotas.catalog.sync import sync
from quotas.limits import services as limits
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node, plugin_node, slices_of
from tests.support.mig_facts import cut_gpu, device
from tests.support.people import client, person
from tests.support.quotas import used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/api/v1/allocations"


@pytest.fixture
def api(team, project) -> APIClient:
    """Create a team that may have all of an h100 node of four GPUs, a time-sliced t4 and an l4 with MPS."""
    cluster = Cluster.objects.get(slug=LOCAL)
    cut = slices_of("h100-0", *(part for n in range(4) for part in cut_gpu("h100-0", n)))
    shared = {"gpu__replicas": "4", "gpu__sharing_strategy": "time-slicing"}
    mps = {"gpu__replicas": "4", "gpu__sharing_strategy": "mps"}
    nodes = [
        dra_node(),
        plugin_node("t4-0", "Tesla-T4", {"nvidia.com/gpu.shared": 8}, "15360", **labels(shared)),
        plugin_node("l4-0", "NVIDIA-L4-SHARED", {"nvidia.com/gpu": 8}, "23034", **labels(mps)),
    ]
    sync(cluster.slug, discover(nodes, [cut]), {})
    for flavor in cluster.flavors.all():
        catalog.accept_flavor(SYSTEM, flavor)
    for pool in Pool.objects.all():
        limits.set_limit(SYSTEM, team, pool, 8)
    return client(person(team))


def labels(given: dict[str, str]) -> dict[str, str]:
    """Return the labels as keyword arguments of ``plugin_node``: `gpu.sharing-strategy`."""
    return {name.replace("__", "_").replace("sharing_strategy", "sharing__strategy"): v for name, v in given.items()}


def ask(api: APIClient, offering: str, count: int = 1, *, preview: bool = False, **body: Any) -> Any:
    wanted = {"project": "vision-train", "offering": offering, "count": count, **body}
    return api.post(f"{URL}/preview" if preview else URL, wanted, format="json")


def taken(*devices: str) -> None:
    """Create a claim that has these devices of the h100 node."""
    found = [{"request": "a", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": name} for name in devices]
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ResourceClaim",
        name=f"claim-{devices[0]}",
        uid="u",
        resource_version=1,
        facts={"devices": found},
        seen_at=clock.now(),
    )


def capacity(api: APIClient) -> dict[str, dict[str, int]]:
    return {row["id"]: row["capacity"] for row in api.get("/api/v1/offerings?limit=100").json()["results"]}


class TestFree:
    def test_is_what_fits_where_it_stands(self, api: APIClient) -> None:
        before = capacity(api)
        taken(device("gpu-0", "1g.10gb", 0), device("gpu-1", "1g.10gb", 4))
        after = capacity(api)
        assert (before["h100/whole"]["free"], after["h100/whole"]["free"]) == (4, 2)
        assert (before["h100/mig-4g.40gb"]["free"], after["h100/mig-4g.40gb"]["free"]) == (4, 3)
        assert (before["h100/mig-3g.40gb"]["free"], after["h100/mig-3g.40gb"]["free"]) == (8, 6)
        assert (before["h100/mig-1g.10gb"]["free"], after["h100/mig-1g.10gb"]["free"]) == (28, 26)
        assert {after[offering]["total"] for offering in ("h100/whole", "h100/mig-7g.80gb")} == {4}

    def test_is_no_more_than_gpus_have_of_a_profile(self, api: APIClient) -> None:
        """By slices alone, four GPUs would have room for fourteen 2g."""
        assert capacity(api)["h100/mig-2g.20gb"]["total"] == 12

    def test_decides_whether_it_fits_now(self, api: APIClient) -> None:
        taken(*(device(f"gpu-{n}", "1g.10gb", 0) for n in range(3)))
        assert ask(api, "h100/whole", 1, preview=True).json()["fits"] == "now"
        assert ask(api, "h100/whole", 2, preview=True).json()["fits"] == "queue"
        assert ask(api, "h100/mig-3g.40gb", 5, preview=True).json()["fits"] == "now"
        assert ask(api, "h100/mig-3g.40gb", 6, preview=True).json()["fits"] == "queue"

    def test_takes_no_query_more_for_more_claims(self, api: APIClient) -> None:
        def grow() -> None:
            for number in range(4):
                taken(*(device(f"gpu-{number}", "1g.10gb", start) for start in range(1, 5)))

        taken(*(device(f"gpu-{number}", "1g.10gb", 0) for number in range(4)))
        assert_constant(lambda: capacity(api), grow, at_most=15)


class TestConstraints:
    def test_are_shown_and_bind_the_claim(self, api: APIClient) -> None:
        answer = ask(api, "h100/mig-1g.10gb", 2, constraints={"same_gpu": True}, name="pair")
        assert answer.status_code == 201
        shown = answer.json()["constraints"]
        assert {name for name, value in shown.items() if value} == {"same_gpu"}
        planned = api.get(f"{URL}/{answer.json()['id']}/manifests").json()["results"]
        assert "matchAttribute: gpu.nvidia.com/parentUUID" in planned[1]["yaml"]

    @pytest.mark.parametrize(
        ("offering", "count", "constraint", "most"),
        [
            ("h100/mig-1g.10gb", 8, "same_gpu", 7),
            ("h100/whole", 3, "same_pcie_root", 2),
            ("h100/mig-3g.40gb", 5, "distinct_gpus", 4),
            ("h100/whole", 1, "same_clique", 0),
            ("t4/shared", 2, "same_gpu", 0),
        ],
    )
    def test_that_never_hold_are_refused(
        self, api: APIClient, offering: str, count: int, constraint: str, most: int
    ) -> None:
        problem = ask(api, offering, count, constraints={constraint: True}).json()
        assert (problem["status"], problem["reason"], problem["limit"]) == (409, "never_fits", most)
        assert problem["hint"]

    @pytest.mark.parametrize(
        "constraints",
        [
            {"same_gpu": True, "distinct_gpus": True},
            {"same_gpu": True, "spread": True},
            {"same_rack": True},
            {"same_gpu": "yes"},
        ],
    )
    def test_that_make_no_sense_are_400(self, api: APIClient, constraints: dict[str, object]) -> None:
        answer = ask(api, "h100/mig-1g.10gb", 2, constraints=constraints)
        assert answer.status_code == 400
        assert any(field.startswith("constraints") for field in answer.json()["errors"])


class TestSharing:
    def test_is_shown_and_is_not_isolation(self, api: APIClient) -> None:
        body = ask(api, "h100/whole", sharing={"strategy": "TimeSlicing", "interval": "Short"}).json()
        assert body["sharing"]["interval"] == "Short"
        assert body["isolation"] == "none"
        assert "TimeSlicing" in body["isolation_note"]

    def test_without_it_a_slice_is_as_isolated_as_it_is_offered(self, api: APIClient) -> None:
        body = ask(api, "h100/mig-1g.10gb").json()
        assert (body["isolation"], body["isolation_note"], body["sharing"]) == ("hardware", "", None)

    @pytest.mark.parametrize(
        ("offering", "sharing"),
        [
            ("h100/mig-1g.10gb", {"strategy": "TimeSlicing", "interval": "Short"}),
            ("h100/whole", {"strategy": "Turns"}),
            ("h100/whole", {"strategy": "MPS"}),
            ("h100/whole", {}),
            ("h100/whole", {"strategy": "TimeSlicing", "replicas": 4}),
            ("t4/shared", {"strategy": "TimeSlicing"}),
        ],
    )
    def test_that_the_driver_would_refuse_is_400(
        self, api: APIClient, offering: str, sharing: dict[str, object]
    ) -> None:
        answer = ask(api, offering, sharing=sharing)
        assert answer.status_code == 400
        assert any(field.startswith("sharing") for field in answer.json()["errors"])


class TestWarnings:
    def test_training_on_a_shared_slice_is_allowed_and_warned_against(self, api: APIClient) -> None:
        body = ask(api, "t4/shared", purpose="fine-tuning a small model", preview=True).json()
        (warned,) = body["warnings"]
        assert (body["fits"], warned["reason"]) == ("now", "not_isolated")
        assert warned["alternative"]["offering"] == "h100/mig-1g.20gb"
        made = ask(api, "t4/shared", purpose="fine-tuning a small model")
        assert made.status_code == 201
        assert [one["detail"] for one in made.json()["warnings"]] == [warned["detail"]]

    def test_what_is_offered_instead_is_isolated_and_accepted(self, api: APIClient) -> None:
        (warned,) = ask(api, "t4/shared", 4, preview=True).json()["warnings"]
        other = warned["alternative"]
        assert ask(api, other["offering"], other["count"], hours=other["hours"]).status_code == 201

    def test_other_work_is_not_warned_against(self, api: APIClient) -> None:
        assert ask(api, "t4/shared", purpose="inference", preview=True).json()["warnings"] == []


def test_more_than_one_of_what_is_taken_one_at_a_time_is_refused(api: APIClient) -> None:
    problem = ask(api, "l4/shared", 2).json()
    assert (problem["status"], problem["reason"], problem["limit"]) == (409, "count_invalid", 1)
    assert problem["alternatives"][0] == {**problem["alternatives"][0], "offering": "l4/shared", "count": 1}
    one = ask(api, "l4/shared", 1)
    assert one.status_code == 201
    assert "25 %" in one.json()["isolation_note"]


@pytest.mark.parametrize(("flavor", "switch", "status"), [("t4", True, 409), ("l4", False, 201)])
def test_an_operator_says_what_the_device_plugin_is_configured_to(
    api: APIClient, flavor: str, switch: bool, status: int
) -> None:
    """Its failRequestsGreaterThanOne has no label: by default it is off for time-slicing, and on for MPS."""
    row = Flavor.objects.get(name=flavor)
    catalog.configure_flavor(SYSTEM, row, {"fail_requests_greater_than_one": switch})
    assert ask(api, f"{flavor}/shared", 2).status_code == status


def test_too_large_a_slice_has_smaller_ones_for_alternatives(api: APIClient) -> None:
    problem = ask(api, "h100/whole", 9).json()
    others = [found["offering"] for found in problem["alternatives"]]
    assert others[0] == "h100/whole"
    assert "h100/mig-7g.80gb" in others
    assert not any("shared" in offering for offering in others)


def test_a_mig_device_is_told_with_its_gpu_profile_and_place(api: APIClient) -> None:
    id_ = ask(api, "h100/mig-3g.40gb").json()["id"]
    row = used(clock.now(), None, allocation=Allocation.objects.get(pk=id_).pk, node="h100-0", flavor="h100")
    name = device("gpu-1", "3g.40gb", 4)
    UsageInterval.objects.filter(pk=row.pk).update(slot=f"local/h100-0/{name}", cluster="local")
    assert api.get(f"{URL}/{id_}").json()["devices"] == [
        {
            "node": "h100-0",
            "device": name,
            "uuid": "",
            "parent_uuid": "GPU-h100-0-1",
            "profile": "3g.40gb",
            "placement": {"start": 4, "size": 4},
        }
    ]
