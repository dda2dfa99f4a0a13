"""An allocation's pods use only its own slices, and none before they are charged; on the real API server."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.cluster.manifests.platform import HOLD_PRIORITY, hold_class
from allocations.domain.actions import Apply
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.reconcile.engine.apply import apply
from allocations.requests import services
from deploy.local.control_plane import device_taint_rules
from deploy.local.runner import Local
from portal.core import clock
from portal.tenants.models import Project, User
from portal.workqueue import targets
from quotas.metering.models import UsageInterval
from tests.support.cluster.allocations import ended, held, intervals, phase, request_slices, wait_for
from tests.support.cluster.api_client import PORTAL, ApiClient
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of, retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.cluster.watch_events import events_since
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster
GPU = "nvidia.com/gpu"
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.fixture(scope="module")
def portal(local: Local) -> ApiClient:
    """Return a client as the portal's account, which the guards let do what it does."""
    return ApiClient(local.home, acting_as=PORTAL)


@pytest.fixture
def tenant(local: Local, project: Project, member: User, tmp_path: Path) -> Person:
    return person_of(local, tmp_path, member, project.namespace)


def attempt(tenant: Person, name: str, allocation: Allocation | None, gpus: int = 0, **annotations: str) -> str:
    """Create a pod, with or without an allocation, as the tenant; return the API server's refusal, or an empty
    text.
    """
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"limits": {GPU: str(gpus)}} if gpus else {},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    metadata = {
        "name": name,
        "labels": {names.ALLOCATION: allocation.name} if allocation else {},
        "annotations": {f"gpu-portal.io/{key.replace('_', '-')}": value for key, value in annotations.items()},
    }
    spec = {"containers": [container], "securityContext": RESTRICTED}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return tenant.create(pod).message


def create(tenant: Person, name: str, allocation: Allocation | None, gpus: int = 0, **annotations: str) -> None:
    refusal = attempt(tenant, name, allocation, gpus, **annotations)
    assert refusal == ""


def running_gpus(admin: ApiClient, project: Project) -> int:
    pods = admin.objects("pods", project.namespace)
    running = (pod["spec"] for pod in pods if pod["status"]["phase"] == "Running")
    return sum(int(c["resources"].get("limits", {}).get(GPU, 0)) for spec in running for c in spec["containers"])


def open_counts(project: Project) -> list[int]:
    return list(UsageInterval.objects.filter(project=project.slug, end=None).values_list("count", flat=True))


def guard(admin: ApiClient, row: Allocation) -> dict[str, Any]:
    return admin.get("gpuproject", "gpu-portal", row.project.namespace)


def is_in_guard(admin: ApiClient, row: Allocation) -> bool:
    return row.name in guard(admin, row)["spec"]["allocations"]


def was_in_guard(kubectl: Kubectl, row: Allocation, since: str) -> list[bool]:
    """Return whether it was listed after each write of the guard since a resourceVersion."""
    guards = f"/apis/gpu-portal.io/v1/namespaces/{row.project.namespace}/gpuprojects"
    events = events_since(kubectl, guards, since)
    return [one["type"] == "MODIFIED" and row.name in one["object"]["spec"]["allocations"] for one in events]


def test_pods_of_one_label_cannot_use_the_share_of_another_allocation(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    large, small = held(member, project, "l40s/whole", 3), held(member, project, "l40s/whole", 1)
    retry_refused(create, tenant, "greedy-0", small, 1)
    messages = [attempt(tenant, f"greedy-{n}", small, 1) for n in range(1, 4)]
    assert all(f"exceeded quota: {names.hold_slot(small.number)}" in message for message in messages)
    eventually(lambda: running_gpus(admin, project) == 1)
    ended(member, large)
    assert running_gpus(admin, project) == 1
    assert open_counts(project) == [1]


@pytest.mark.since("1.36")
def test_more_pods_than_go_with_a_slice_are_refused(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    row = held(member, project, "h100/mig-1g.10gb")
    pods = int(admin.get("resourcequota", names.hold_slot(row.number), project.namespace)["spec"]["hard"]["pods"])
    for number in range(pods):
        retry_refused(create, tenant, f"small-{number}", row)
    refusal = attempt(tenant, "small-too", row)
    assert f"exceeded quota: {names.hold_slot(row.number)}, requested: pods=1, used: pods={pods}" in refusal


def test_number_lease_and_charge_come_back_when_the_last_pod_of_the_class_has_gone(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    """Its deletion is recorded after a second, and it stays until an operator forces it: ``status.used`` of the quota
    is zero long before, as soon as another pod goes and Kubernetes recomputes the quotas.
    """
    first = held(member, project, "l40s/whole")
    retry_refused(create, tenant, "slow", first, 1, stop_after="120s")
    eventually(lambda: running_gpus(admin, project) == 1)
    tenant.delete("pod", "slow", gracePeriodSeconds=1)
    services.release(member, first)
    wait_for(first, Phase.RELEASING)

    def used_anew() -> str:
        create(tenant, "passing", None)
        tenant.delete("pod", "passing")
        eventually(lambda: not admin.find("pod", "passing", project.namespace))
        quota = admin.get("resourcequota", names.hold_slot(first.number), project.namespace)
        return str(quota["status"]["used"][f"requests.{GPU}"])

    eventually(lambda: used_anew() == "0")
    assert phase(first) == Phase.RELEASING
    assert open_counts(project) == [1]
    assert request_slices(member, project, "t4/shared").number != first.number
    admin.delete("pod", "slow", project.namespace, gracePeriodSeconds=0)
    wait_for(first, Phase.ENDED, within_s=60)
    assert request_slices(member, project, "t4/shared").number == first.number


def test_a_quota_that_no_allocation_has_stays_at_zero(project: Project, member: User, admin: ApiClient) -> None:
    row = ended(member, held(member, project, "l40s/whole"))

    def hard() -> dict[str, str]:
        return dict(admin.get("resourcequota", names.hold_slot(row.number), project.namespace)["status"]["hard"])

    eventually(lambda: set(hard().values()) == {"0"})


@pytest.fixture
def one_gpu_of_the_only_node(admin: ApiClient) -> Any:
    """Taint one GPU of h100-0 by a rule and cordon h100-1: seven GPUs are left. Yields the function that does it,
    since a later request would be refused at once.
    """
    rule = {
        "apiVersion": device_taint_rules(),
        "kind": "DeviceTaintRule",
        "metadata": {"name": "test-one-card"},
        "spec": {
            "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "h100-0", "device": "gpu-7"},
            "taint": {"key": "test/unhealthy", "value": "yes", "effect": "NoSchedule"},
        },
    }

    def shut() -> None:
        admin.patch("node", "h100-1", body={"spec": {"unschedulable": True}})
        admin.apply(rule)

    yield shut
    admin.patch("node", "h100-1", body={"spec": {"unschedulable": None}})
    admin.delete("devicetaintrule", "test-one-card")


@pytest.mark.since("1.36")
def test_of_eight_spread_slices_seven_are_not_usable_while_the_eighth_cannot_start(
    project: Project, member: User, tenant: Person, admin: ApiClient, one_gpu_of_the_only_node: Any
) -> None:
    row = request_slices(
        member, project, "h100/whole", 8, constraints={"spread": True}, starts_at=clock.now() + timedelta(seconds=12)
    )
    one_gpu_of_the_only_node()

    def slices() -> int:
        claims = admin.objects("resourceclaims", project.namespace)
        return sum("allocation" in claim.get("status", {}) for claim in claims)

    eventually(lambda: slices() == 7, within_s=60)
    assert "no active allocation named" in attempt(tenant, "early", row, slices="0")
    assert not is_in_guard(admin, row)
    assert open_counts(project) == []
    services.release(member, row)
    wait_for(row, Phase.ENDED)
    assert intervals(row) == []


def test_the_loss_of_one_spread_holder_shuts_out_no_pod(
    project: Project, member: User, tenant: Person, admin: ApiClient, kubectl: Kubectl
) -> None:
    row = held(member, project, "h100/whole", 3, constraints={"spread": True})
    retry_refused(create, tenant, "before", row, slices="2")
    before = guard(admin, row)["metadata"]["resourceVersion"]
    admin.delete("pod", f"{row.name}.1-holder", project.namespace)
    assert attempt(tenant, "other", row, slices="0") == ""

    def phases() -> list[str]:
        return list(row.transitions.filter(type="phase").order_by("id").values_list("to_phase", flat=True))

    eventually(lambda: phases().count(Phase.ACTIVE) == 2, within_s=60)
    assert phases()[-2:] == [Phase.STARTING, Phase.ACTIVE]
    assert is_in_guard(admin, row)
    assert all(was_in_guard(kubectl, row, before))
    eventually(lambda: open_counts(project) == [1, 1, 1])


def test_a_class_of_another_value_is_made_again(admin: ApiClient) -> None:
    """As after an upgrade: they had value 0, which cannot be changed in place."""
    name, target = f"{names.HOLD}{uuid4().hex[:8]}", targets.allocation(LOCAL, uuid4())
    apply(connect(LOCAL), [Apply({**hold_class(name), "value": 0}, "as before")], target)
    apply(connect(LOCAL), [Apply(hold_class(name), "after the upgrade")], target)
    found = admin.get("priorityclass", name)
    admin.delete("priorityclass", name)
    assert (found["value"], found["preemptionPolicy"]) == (HOLD_PRIORITY, "Never")
