"""A slice has its share of its node's CPU and memory, so its holder can always use it; on the real scheduler."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from allocations.capacity.snapshot import CapacitySnapshot
from allocations.cluster import names
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from deploy.local.runner import Local
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog import quantities
from quotas.catalog.models import Offering
from quotas.catalog.node_shares import NodeShare
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.cluster.allocations import held
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of, queued_job, retry_refused
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.fixture
def tenant(local: Local, project: Project, member: User, tmp_path: Path) -> Person:
    return person_of(local, tmp_path, member, project.namespace)


@pytest.fixture
def neighbour(lent_projects: LentProjects) -> Iterator[Project]:
    with lent_projects.lent() as project:
        yield project


@pytest.fixture
def every_l40s(vision: Team) -> Iterator[int]:
    """Let the team hold all of them for one test; yield how many are free."""
    offering = Offering.objects.select_related("pool", "flavor").get(key="l40s/whole")
    before = Limit.objects.get(team=vision, pool=offering.pool).nominal
    limits.set_limit(SYSTEM, vision, offering.pool, 8)
    yield eventually(lambda: (free := CapacitySnapshot().capacity(offering).free) > 1 and free)
    limits.set_limit(SYSTEM, vision, offering.pool, before)


def share_of(row: Allocation) -> NodeShare:
    return spec_of_row.resolved_spec(spec_of_row.rows().get(pk=row.pk)).slice_share


def pod(name: str, row: Allocation, asks: dict[str, str], **annotations: str) -> Object:
    metadata = {
        "name": name,
        "namespace": row.project.namespace,
        "labels": {names.ALLOCATION: row.name},
        "annotations": {f"gpu-portal.io/{key}": value for key, value in annotations.items()},
    }
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "securityContext": SAFE}
    spec = {"containers": [{**container, "resources": {"requests": asks}}], "securityContext": RESTRICTED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def amounts(share: NodeShare, percent: int) -> dict[str, str]:
    return {"cpu": f"{share.cpu_millicores * percent // 100}m", "memory": f"{share.memory_mib * percent // 100}Mi"}


def read(amounts: dict[str, str]) -> dict[str, Fraction]:
    """Return CPU and memory as numbers, however Kubernetes writes them."""
    return {name: quantities.value(amounts[name]) for name in ("cpu", "memory")}


def pod_of(admin: ApiClient, row: Allocation, name: str) -> Object:
    return admin.get("pod", name, row.project.namespace)


def is_running(admin: ApiClient, row: Allocation, name: str) -> bool:
    return bool(pod_of(admin, row, name)["status"].get("phase") == "Running")


def test_every_gpu_of_a_full_flavor_can_be_used_with_all_that_goes_with_it(
    every_l40s: int, project: Project, neighbour: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    large, last = held(member, project, "l40s/whole", every_l40s - 1), held(member, neighbour, "l40s/whole")
    share = share_of(large)
    for number in range(every_l40s - 1):
        retry_refused(tenant.created, pod(f"p-{number}", large, amounts(share, 100), slices="1"))
    for number in range(every_l40s - 1):
        eventually(partial(is_running, admin, large, f"p-{number}"))
    retry_refused(admin.created, pod("late", last, amounts(share, 100)))
    eventually(partial(is_running, admin, last, "late"))


def test_pods_of_one_claim_together_ask_for_no_more_than_goes_with_it(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    row = held(member, project, "h100/mig-1g.10gb")
    share = share_of(row)
    retry_refused(tenant.created, pod("first", row, amounts(share, 60)))
    eventually(partial(is_running, admin, row, "first"))
    message = tenant.create(pod("second", row, amounts(share, 60))).message
    assert f"exceeded quota: {names.hold_slot(row.number or 0)}, requested: requests.cpu=" in message
    tenant.created(pod("third", row, amounts(share, 40)))
    eventually(partial(is_running, admin, row, "third"))


@pytest.mark.parametrize(("offering", "count"), [("l40s/whole", 2), ("h100/mig-1g.10gb", 2), ("t4/shared", 2)])
def test_limits_left_out_become_what_goes_with_the_pods_slices(
    offering: str, count: int, project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    row = held(member, project, offering, count)
    retry_refused(tenant.created, pod("plain", row, {}))
    resources = pod_of(admin, row, "plain")["spec"]["containers"][0]["resources"]
    slices = 1 if offering == "t4/shared" else count
    share = share_of(row).times(slices)
    assert read(resources["limits"]) == read(share.amounts)
    assert read(resources["requests"]) == read({"cpu": "100m", "memory": "256Mi"})


def test_one_pod_at_a_time_runs_on_a_slice_that_may_be_on_any_node(
    project: Project, member: User, tenant: Person, admin: ApiClient
) -> None:
    row = held(member, project, "h100/whole", 2, constraints={"spread": True})
    for name, number in (("first", "0"), ("other", "1")):
        retry_refused(tenant.created, pod(name, row, amounts(share_of(row), 100), slices=number))
        eventually(partial(is_running, admin, row, name))
    tenant.delete("pod", "other")
    eventually(lambda: not admin.find("pod", "other", project.namespace))
    retry_refused(tenant.created, pod("second", row, amounts(share_of(row), 100), slices="0"))
    eventually(lambda: "anti-affinity" in scheduling(admin, row, "second"))
    tenant.delete("pod", "first")
    eventually(partial(is_running, admin, row, "second"))


def scheduling(admin: ApiClient, row: Allocation, name: str) -> str:
    conditions = pod_of(admin, row, name)["status"].get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def test_a_queued_job_that_asks_for_eight_cpu_and_states_no_limit_runs(
    tenant: Person,
) -> None:
    job = queued_job("eight")
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpu": "1", "cpu": "8"}
    tenant.created(job)

    def running() -> list[Object]:
        pods = tenant.items("pods", "batch.kubernetes.io/job-name=eight")
        return [pod for pod in pods if pod["status"].get("phase") == "Running"]

    found = eventually(running)
    share = Offering.objects.select_related("flavor").get(key="l40s/whole").node_share
    assert read(found[0]["spec"]["containers"][0]["resources"]["limits"]) == read(share.amounts)


def test_the_people_of_a_project_see_what_goes_with_slices(project: Project, member: User, tenant: Person) -> None:
    row = held(member, project, "l40s/whole")
    spec = tenant.get("gpuproject", "gpu-portal")["spec"]
    assert spec["allocations"][row.name]["share"] == share_of(row).amounts
    assert spec["flavors"]["l40s"]["resources"] == {"nvidia.com/gpu": share_of(row).amounts}
