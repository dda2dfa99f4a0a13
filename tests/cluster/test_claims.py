"""Custom claims on the real control plane: requested over REST, allocated by the scheduler, used by a tenant's
pod.
"""

import json
import random
from typing import Any

import pytest
import yaml

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.core import clock
from portal.core.models import WorkItem
from portal.tenants.actors import System
from portal.tenants.models import Project, User
from portal.tenants.structure import change_project
from tests.support.cluster.allocations import ended, intervals, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.hardware import Command
from tests.support.cluster.pods import running_pod
from tests.support.cluster.tenants import retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.cluster.watch_events import events_since
from tests.support.people import client

pytestmark = pytest.mark.cluster
ROOT = "resource.kubernetes.io/pcieRoot"
OFFERING = "h100/claim"
UNIT = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}


@pytest.fixture
def operator() -> User:
    return User.objects.get(username="operator")


class Asking:
    """A person who requests claims in a project."""

    def __init__(self, user: User, project: Project, admin: ApiClient) -> None:
        self.api, self.project, self.admin = client(user), project, admin

    def post(self, *requests: dict[str, Any], path: str = "allocations", **parts: Any) -> Any:
        body = {"project": self.project.slug, "offering": OFFERING, "claim": {"requests": list(requests), **parts}}
        return self.api.post(f"/api/v1/{path}", body, format="json")

    def preview(self, *requests: dict[str, Any], **parts: Any) -> dict[str, Any]:
        answer = self.post(*requests, path="allocations/preview", **parts)
        assert answer.status_code == 200, answer.json()
        found: dict[str, Any] = answer.json()
        return found

    def held(self, *requests: dict[str, Any], **parts: Any) -> Allocation:
        answer = self.post(*requests, **parts)
        assert answer.status_code == 201, answer.json()
        return wait_for(Allocation.objects.get(pk=answer.json()["id"]), Phase.ACTIVE)

    def refused(self, *requests: dict[str, Any], **parts: Any) -> dict[str, Any]:
        answer = self.post(*requests, **parts)
        assert answer.status_code in (400, 403, 409), answer.json()
        found: dict[str, Any] = answer.json()
        return found

    def devices(self, row: Allocation) -> list[dict[str, Any]]:
        """Return the devices that the scheduler allocated: the claim's results, each with its published
        attributes.
        """
        claim = self.admin.get("resourceclaim", row.name, self.project.namespace)
        slices = self.admin.objects("resourceslices")
        published = {(s["spec"].get("nodeName"), d["name"]): d for s in slices for d in s["spec"].get("devices", ())}
        results = claim["status"]["allocation"]["devices"]["results"]
        return [result | {"published": published[result["pool"], result["device"]]} for result in results]

    def lease(self, row: Allocation) -> dict[str, int]:
        lease = self.admin.get("workload", f"{row.name}-lease", self.project.namespace)
        [container] = lease["spec"]["podSets"][0]["template"]["spec"]["containers"]
        return {
            resource: int(amount) for resource, amount in container.get("resources", {}).get("requests", {}).items()
        }


@pytest.fixture
def asking(member: User, project: Project, admin: ApiClient) -> Asking:
    return Asking(member, project, admin)


@pytest.fixture
def operating(operator: User, project: Project, admin: ApiClient) -> Asking:
    return Asking(operator, project, admin)


def attribute(device: dict[str, Any], name: str) -> Any:
    return next(iter(device["published"]["attributes"][name].values()))


def test_two_gpus_below_one_pcie_root(asking: Asking, member: User) -> None:
    pair = {"name": "pair", "device": "gpu", "count": 2}
    row = asking.held(pair, constraints=[{"match_attribute": ROOT, "requests": ["pair"]}])
    devices = asking.devices(row)
    assert len(devices) == 2
    assert len({attribute(device, ROOT) for device in devices}) == 1
    assert asking.lease(row) == {resource: 2 * amount for resource, amount in UNIT.items()}
    assert [interval.gpus for interval in intervals(row)] == [1, 1]
    assert asking.api.get(f"/api/v1/allocations/{row.pk}").json()["claim"]["requests"] == [pair]
    ended(member, row)


def test_a_mig_slice_and_a_whole_gpu_in_one_claim(asking: Asking) -> None:
    row = asking.held({"device": "gpu"}, {"name": "small", "device": "mig", "profile": "1g.10gb"})
    found = sorted(str(attribute(device, "type")) for device in asking.devices(row))
    assert found == ["gpu", "mig"]
    assert asking.lease(row) == {"gpu-portal.io/compute-slices": 8, "gpu-portal.io/memory-slices": 9}
    assert float(sum(interval.gpus for interval in intervals(row))) == pytest.approx(1 + 1 / 7)


def test_the_first_alternative_that_can_be_had(asking: Asking) -> None:
    best = {
        "name": "best",
        "alternatives": [
            {"device": "gpu", "tolerations": [], "attributes": [{"name": "brand", "operator": "==", "value": "Tesla"}]},
            {"name": "slice", "device": "mig", "profile": "2g.20gb"},
        ],
    }
    row = asking.held(best)
    (device,) = asking.devices(row)
    assert (device["request"], attribute(device, "profile")) == ("best/slice", "2g.20gb")


def test_all_gpus_of_a_node(asking: Asking) -> None:
    row = asking.held({"device": "gpu", "count": "all"})
    devices = asking.devices(row)
    assert len(devices) == 8
    assert len({device["pool"] for device in devices}) == 1
    assert asking.lease(row) == {resource: 8 * amount for resource, amount in UNIT.items()}


def test_enough_memory_whatever_the_profile(asking: Asking) -> None:
    enough = [
        {"name": "memory", "operator": ">=", "value": "30Gi"},
        {"name": "multiprocessors", "operator": "<=", "value": "60"},
    ]
    row = asking.held({"device": "mig", "capacities": enough})
    (device,) = asking.devices(row)
    assert attribute(device, "profile") == "3g.40gb"
    assert asking.lease(row) == {"gpu-portal.io/compute-slices": 3, "gpu-portal.io/memory-slices": 4}


def test_every_type_of_condition_is_taken_by_the_scheduler(asking: Asking) -> None:
    conditions = [
        {"name": "driverVersion", "operator": ">=", "value": "500.0.0"},
        {"name": "cudaComputeCapability", "operator": "in", "value": ["8.0.0", "9.0.0"]},
        {"name": "architecture", "operator": "!=", "value": "Ampere"},
        {"name": "resource.kubernetes.io/numaNode", "operator": ">=", "value": 1},
    ]
    row = asking.held({"device": "gpu", "attributes": conditions})
    (device,) = asking.devices(row)
    assert attribute(device, "resource.kubernetes.io/numaNode") == 1


def test_a_tainted_device_is_given_to_who_tolerates_it(asking: Asking, fleet: Command) -> None:
    slices = asking.admin.get("resourceslice", "h100-1-gpu.nvidia.com-gpu-7")
    uuid = slices["spec"]["devices"][0]["attributes"]["uuid"]["string"]
    sick = {"device": "gpu", "attributes": [{"name": "uuid", "operator": "==", "value": uuid}]}
    fleet("taint", "h100-1/gpu-7", "--xid", "79")
    try:
        eventually(lambda: asking.preview(sick)["fits"] == "queue", AssertionError)
        row = asking.held(sick | {"tolerations": [{"key": "gpu.nvidia.com/xid", "effect": "NoSchedule"}]})
        assert [device["device"] for device in asking.devices(row)] == ["gpu-7"]
    finally:
        fleet("heal", "h100-1/gpu-7")


def test_sharing_reaches_the_claim_as_nvidias_driver_reads_it(asking: Asking) -> None:
    sharing = {"strategy": "TimeSlicing", "interval": "Long"}
    row = asking.held({"name": "gpu", "device": "gpu"}, config=[{"requests": ["gpu"], "sharing": sharing}])
    claim = asking.admin.get("resourceclaim", row.name, row.project.namespace)
    (config,) = claim["status"]["allocation"]["devices"]["config"]
    assert config["source"] == "FromClaim"
    assert config["opaque"]["parameters"]["sharing"] == {
        "strategy": "TimeSlicing",
        "timeSlicingConfig": {"interval": "Long"},
    }
    assert asking.api.get(f"/api/v1/allocations/{row.pk}").json()["isolation"] == "none"


@pytest.mark.parametrize("text", ['" || true || "', "\\", "') || ('", "\u202e", "x\n&& true"])
def test_hostile_text_is_a_value_that_no_device_has(asking: Asking, text: str) -> None:
    condition = {"name": "productName", "operator": "==", "value": text}
    found = asking.refused({"device": "gpu", "attributes": [condition]})
    assert found["reason"] == "never_fits"
    assert "NVIDIA H100 80GB HBM3" in found["hint"]


def test_what_can_never_be_held_is_refused_with_what_would(asking: Asking) -> None:
    root = [{"match_attribute": ROOT}]
    assert asking.refused({"name": "gpu", "count": 8}, constraints=root)["hint"].startswith("Ask for at most")
    found = asking.refused({"count": 9})
    assert (found["reason"], found["limit"], found["requested"]) == ("never_fits", 8, 9)


def test_the_preview_tells_now_from_queue(asking: Asking, member: User) -> None:
    eventually(lambda: asking.preview({"count": 8})["fits"] == "now")
    row = asking.held({"count": 8})
    assert asking.preview({"count": 1})["fits"] == "queue"
    ended(member, row)


def test_a_tenants_pod_may_pick_one_request_by_its_number(asking: Asking, admin: ApiClient) -> None:
    row = asking.held({"name": "big", "device": "gpu"}, {"name": "small", "device": "mig", "profile": "1g.10gb"})
    pod = asking.api.get(f"/api/v1/allocations/{row.pk}/connect").json()["pod_yaml"]
    picked = pod.replace("metadata:\n", "metadata:\n  annotations: {gpu-portal.io/slices: '1'}\n", 1)
    retry_refused(admin.created, yaml.safe_load(picked), row.project.namespace)
    running = running_pod(admin, row.project.namespace, f"{row.name}-pod")
    assert running["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpu-portal", "request": "small"}]


def test_raw_cel_is_for_operators_and_tried_first(asking: Asking, operating: Asking, operator: User) -> None:
    good = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
    assert asking.refused({"cel": [good]})["reason"] == "role_missing"
    bad = operating.refused({"device": "gpu", "cel": ["true", "device.nonsense =="]})
    assert list(bad["errors"]) == ["claim.requests[0].cel[1]"]
    assert "Syntax error" in bad["detail"]
    row = operating.held({"device": "gpu", "cel": [good]})
    assert len(operating.devices(row)) == 1
    ended(operator, row)


@pytest.mark.own_project
def test_admin_access_costs_nothing_and_needs_a_marked_project(
    asking: Asking, operating: Asking, operator: User, member: User, project: Project, admin: ApiClient
) -> None:
    admin_request = {"name": "look", "device": "gpu", "count": "all", "admin_access": True}
    assert asking.refused(admin_request)["reason"] == "role_missing"
    assert "not marked" in operating.refused(admin_request)["detail"]
    change_project(System("operator"), project, {"admin_access": True})
    label = "resource.kubernetes.io/admin-access"
    eventually(lambda: admin.get("namespace", project.namespace)["metadata"]["labels"].get(label) == "true")
    own_row = asking.held({"count": 1})
    row = operating.held(admin_request)
    assert len(operating.devices(row)) == 8
    assert operating.lease(row) == {}
    assert intervals(row) == []
    ended(operator, row)
    assert asking.devices(own_row)
    ended(member, own_row)


def random_claim(chance: random.Random) -> dict[str, Any]:
    """Return a claim of up to two requests for a few devices, some of them with a common constraint."""

    def choice() -> dict[str, Any]:
        if chance.random() < 0.4:
            return {"device": "gpu", "count": chance.randint(1, 4)}
        profile = chance.choice(["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb"])
        return {"device": "mig", "profile": profile, "count": chance.randint(1, 4)}

    requests = [choice() for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.3:
        requests[0] = {"alternatives": [requests[0], choice()]}
    bound = chance.choice(["", "", "parentUUID", ROOT])
    kinds = {one.get("device", "mixed") for one in requests}
    if bound == "parentUUID" and kinds != {"mig"}:
        bound = ""
    constraints = [{chance.choice(["match_attribute", "distinct_attribute"]): bound}] if bound else []
    return {"requests": requests, "constraints": constraints}


SMALL = {"device": "mig", "profile": "1g.10gb"}
HALVES = {
    "a custom claim": {"offering": OFFERING, "claim": {"requests": [{"device": "mig", "profile": "3g.40gb"}] * 15}},
    "slices of an offering": {"offering": "h100/mig-3g.40gb", "count": 15},
}


@pytest.mark.parametrize("asked", HALVES.values(), ids=HALVES)
def test_a_claim_that_the_scheduler_would_search_in_vain_reaches_it_once_there_is_room(
    asked: dict[str, Any], asking: Asking, member: User, kubectl: Kubectl
) -> None:
    """Fifteen halves of GPUs, while two GPUs of each node have room for one half: the scheduler tries all orders."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{asking.project.namespace}/resourceclaims"
    gpus = [gpu_uuid(asking.admin, node, gpu) for node in ("h100-0", "h100-1") for gpu in ("gpu-6", "gpu-7")]
    in_use = [asking.held(SMALL | selected(gpu)) for gpu in gpus]
    start = revision(kubectl, path)
    answer = asking.api.post("/api/v1/allocations", {"project": asking.project.slug, **asked}, format="json")
    assert answer.status_code == 201, answer.json()
    row = wait_for(Allocation.objects.get(pk=answer.json()["id"]), Phase.STARTING)
    assert "UTC, since no node has devices free for the whole claim" in row.message
    eventually(lambda: WorkItem.objects.get(target__contains=str(row.pk)).due_at > clock.now())
    released = revision(kubectl, path)
    for one in (in_use[0], in_use[2]):  # one of each node, since the scheduler looks at all nodes
        ended(member, one)
    wait_for(row, Phase.ACTIVE)
    events = [one["object"]["metadata"] for one in events_since(kubectl, path, start, row.name)]
    assert events
    assert all(int(one["resourceVersion"]) > int(released) for one in events)


def test_many_slices_are_held_on_the_one_node_that_has_room_for_them(asking: Asking, member: User) -> None:
    """Seven GPUs, while two of another node are in use: the scheduler would try the others in every order there."""
    gpus = [gpu_uuid(asking.admin, "h100-0", gpu) for gpu in ("gpu-3", "gpu-4")]
    in_use = [asking.held(SMALL | selected(gpu)) for gpu in gpus]
    asked = {"project": asking.project.slug, "offering": "h100/whole", "count": 7}
    answer = asking.api.post("/api/v1/allocations", asked, format="json")
    assert answer.status_code == 201, answer.json()
    row = wait_for(Allocation.objects.get(pk=answer.json()["id"]), Phase.ACTIVE)
    assert {device["pool"] for device in asking.devices(row)} == {"h100-1"}
    claim = asking.admin.get("resourceclaim", row.name, asking.project.namespace)
    requests = {one["name"]: str(one["exactly"]["selectors"]) for one in claim["spec"]["devices"]["requests"]}
    assert all(attribute(device, "uuid") in requests[device["request"]] for device in asking.devices(row))
    for one in (row, *in_use):
        ended(member, one)


def selected(gpu: str) -> dict[str, Any]:
    """Return what a request of a MIG slice has to select a GPU."""
    return {"attributes": [{"name": "parentUUID", "operator": "==", "value": gpu}]}


def gpu_uuid(admin: ApiClient, node: str, gpu: str) -> str:
    published = admin.get("resourceslice", f"{node}-gpu.nvidia.com-{gpu}")["spec"]["devices"]
    return next(str(device["attributes"]["uuid"]["string"]) for device in published if device["name"] == gpu)


def revision(kubectl: Kubectl, path: str) -> str:
    return str(json.loads(kubectl("get", "--raw", f"{path}?limit=1"))["metadata"]["resourceVersion"])


@pytest.mark.parametrize("seed", range(3))
def test_what_fits_now_is_held_by_the_scheduler(asking: Asking, member: User, seed: int) -> None:
    """One claim after another, in addition to those held: the portal's search and the scheduler's agree."""
    chance = random.Random(seed)
    rows: list[Allocation] = []
    held = 0
    for _ in range(8):
        document = random_claim(chance)
        parts = {"constraints": document["constraints"]}
        if asking.preview(*document["requests"], **parts)["fits"] == "now":
            rows.append(asking.held(*document["requests"], **parts))
            held += 1
        elif rows:
            ended(member, rows.pop(0))
    assert held >= 3
