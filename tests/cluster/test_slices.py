"""MIG slices by DRA: their GPU, their constraints, and sharing between pods."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from allocations.capacity import flavor_devices
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.cluster.client import connect
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.allocation import reconcile_allocation
from allocations.requests import details, selectors
from allocations.requests.details import HeldDevice
from portal.core import clock
from portal.core.errors import Refused
from portal.core.locks import advisory_lock
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Offering
from tests.support.cluster.allocations import ended, held, intervals, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.pods import running_pod
from tests.support.cluster.tenants import retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = [pytest.mark.cluster, pytest.mark.since("1.36")]


def devices(row: Allocation) -> tuple[HeldDevice, ...]:
    return details.by_id([row])[row.pk].devices


def gpus(offering: Offering) -> int:
    """Return how many GPUs the offering's flavor has, whoever uses them."""
    return len(flavor_devices.of_flavors([offering.flavor])[offering.flavor_id].gpus)


def parent(row: Allocation) -> str:
    (one,) = {device.parent_uuid or device.uuid for device in devices(row)}
    return one


def test_a_mig_slice_is_told_with_its_gpu_profile_and_placement(
    project: Project, member: User, admin: ApiClient
) -> None:
    row = held(member, project, "h100/mig-3g.40gb", 2)
    claim = admin.get("resourceclaim", row.name, project.namespace)
    results = {(r["pool"], r["device"]) for r in claim["status"]["allocation"]["devices"]["results"]}
    assert {(d.node, d.device) for d in devices(row)} == results
    assert {(d.profile, d.uuid) for d in devices(row)} == {("3g.40gb", "")}
    assert {d.placement for d in devices(row)} <= {(0, 4), (4, 4)}
    assert all(d.parent_uuid.startswith("GPU-") for d in devices(row))
    assert [i.gpus for i in intervals(row)] == [row.offering.gpu_share] * 2


def test_a_slice_goes_to_the_fuller_gpu_though_an_empty_one_comes_first(project: Project, member: User) -> None:
    first = held(member, project, "h100/whole")
    small = held(member, project, "h100/mig-1g.10gb")
    ended(member, first)
    second = held(member, project, "h100/mig-1g.10gb")
    assert parent(second) == parent(small)
    assert second.device_affinity == {"cards": [parent(small)]}


def test_slices_of_one_request_fill_one_gpu(project: Project, member: User) -> None:
    row = held(member, project, "h100/mig-1g.10gb", 7)
    assert len({d.parent_uuid for d in devices(row)}) == 1
    assert {d.placement for d in devices(row)} == {(start, 1) for start in range(7)}


def test_a_steered_claim_is_made_again_without_when_its_gpu_was_taken_meanwhile(
    project: Project, member: User, admin: ApiClient, foreign: str
) -> None:
    starts_at = clock.now() + timedelta(seconds=5)
    row = request_slices(member, project, "h100/mig-3g.40gb", name="late", starts_at=starts_at)
    with advisory_lock(targets.allocation(LOCAL, row.pk)):  # until it is steered to the taken GPU
        eventually(lambda: clock.now() > starts_at)
        reconcile_allocation(str(row.pk), connect(LOCAL))
        lease = MirrorObject.objects.filter(kind="Workload", name="late-lease", namespace=project.namespace)
        eventually(lambda: lease.filter(facts__conditions__Admitted__status="True").exists())
        Allocation.objects.filter(pk=row.pk).update(device_affinity={"cards": [foreign]})
    wait_for(row, Phase.ACTIVE, within_s=60)
    row.refresh_from_db()
    assert row.device_affinity == {"given_up": True}
    assert parent(row) != foreign
    claim = admin.get("resourceclaim", "late", project.namespace)
    assert "parentUUID" not in json.dumps(claim["spec"])
    assert row.start_failures == 0
    claims = [t.reason for t in row.transitions.filter(type="phase", to_phase="starting")]
    assert "claim_deleted" not in claims


def test_what_somebody_else_has_of_a_gpu_is_not_offered(project: Project, member: User, foreign: str) -> None:
    offering = Offering.objects.select_related("flavor", "pool__use").get(key="h100/whole")
    eventually(lambda: CapacitySnapshot().capacity(offering).free == gpus(offering) - 1)
    small = held(member, project, "h100/mig-1g.10gb")
    assert parent(small) != foreign


def test_free_is_what_fits_where_it_stands(project: Project, member: User) -> None:
    """With a slice on each of two GPUs, half a GPU is in use, and two whole GPUs are unavailable."""
    offering = Offering.objects.select_related("flavor", "pool__use").get(key="h100/whole")
    eventually(lambda: CapacitySnapshot().capacity(offering).free == gpus(offering))
    held(member, project, "h100/mig-1g.10gb", 2, constraints={"distinct_gpus": True})
    assert CapacitySnapshot().capacity(offering).free == gpus(offering) - 2


@pytest.mark.parametrize(
    ("offering", "count", "constraint"),
    [
        ("h100/mig-2g.20gb", 3, "same_gpu"),
        ("h100/mig-1g.10gb", 3, "distinct_gpus"),
        ("h100/mig-3g.40gb", 3, "same_pcie_root"),
        ("h100/whole", 2, "same_pcie_root"),
        ("h100/whole", 2, "distinct_gpus"),
    ],
)
def test_slices_stand_to_each_other_as_the_request_wants(
    offering: str, count: int, constraint: str, project: Project, member: User, admin: ApiClient
) -> None:
    row = held(member, project, offering, count, constraints={constraint: True})
    got = [device.parent_uuid or device.uuid for device in devices(row)]
    roots = {
        gpu.uuid: gpu.pcie_root for gpu in flavor_devices.of_flavors([row.offering.flavor])[row.offering.flavor_id].gpus
    }
    assert {
        "same_gpu": len(set(got)) == 1,
        "distinct_gpus": len(set(got)) == count,
        "same_pcie_root": len({roots[uuid] for uuid in got}) == 1,
    }[constraint]


@pytest.mark.parametrize(
    ("offering", "count", "constraint", "most"),
    [
        ("h100/mig-1g.10gb", 8, "same_gpu", 7),
        ("h100/whole", 3, "same_pcie_root", 2),
        ("h100/whole", 2, "same_gpu", 1),
        ("l40s/whole", 2, "same_pcie_root", 0),
    ],
)
def test_a_constraint_that_never_holds_is_refused_with_what_would(
    offering: str, count: int, constraint: str, most: int, project: Project, member: User
) -> None:
    with pytest.raises(Refused) as caught:
        request_slices(member, project, offering, count, constraints={constraint: True})
    violation = next(d for d in caught.value.violations if d.dimension == f"node:{offering}")
    assert (violation.reason, violation.limit) == ("never_fits", most)
    assert f"constraints.{constraint}" in violation.hint + violation.detail


def test_pods_share_a_claim_as_its_configuration_says(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole", name="turns", sharing={"strategy": "TimeSlicing", "interval": "Long"})
    claim = admin.get("resourceclaim", "turns", project.namespace)
    (config,) = claim["status"]["allocation"]["devices"]["config"]
    assert config["opaque"] == {
        "driver": "gpu.nvidia.com",
        "parameters": {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "GpuConfig",
            "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
        },
    }
    assert selectors.isolation_of(row).level == "none"
    for name in ("one", "two"):
        retry_refused(admin.created, labelled(name, row.name), project.namespace)
    pods = [running_pod(admin, project.namespace, name) for name in ("one", "two")]
    assert {pod["spec"]["nodeName"] for pod in pods} == {devices(row)[0].node}


def test_a_lost_row_comes_back_with_the_gpus_it_was_steered_to(project: Project, member: User) -> None:
    row = held(member, project, "h100/mig-2g.20gb", 2)
    row.refresh_from_db()
    device_affinity, opened = row.device_affinity, [i.key for i in intervals(row)]
    Allocation.objects.filter(pk=row.pk).delete()
    workqueue.enqueue(targets.adoption(LOCAL))
    eventually(lambda: Allocation.objects.filter(pk=row.pk, recovered=True, phase=Phase.ACTIVE.value).exists())
    row = Allocation.objects.get(pk=row.pk)
    assert row.device_affinity == device_affinity
    assert [i.key for i in intervals(row)] == opened


def labelled(name: str, allocation: str) -> dict[str, Any]:
    """Return a pod with only the label."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"gpu-portal.io/allocation": allocation}},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


@pytest.fixture
def foreign(admin: ApiClient, vision: Team) -> Iterator[str]:
    """Hold a whole h100 by a claim without the portal for one test; yield its UUID."""
    name = f"foreign-{uuid4().hex[:6]}"
    admin.created({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
    }
    pod = labelled("user", "none")
    pod["metadata"] = {"name": "user", "namespace": name}
    pod["spec"] |= {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    try:
        admin.created(claim)
        eventually(lambda: admin.created(pod), AssertionError)

        def allocated_devices() -> list[dict[str, Any]]:
            manifest = admin.get("resourceclaim", name, name)
            results: list[dict[str, Any]] = (
                manifest.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            )
            return results

        (device,) = eventually(allocated_devices)
        flavor = Offering.objects.select_related("flavor").get(key="h100/whole").flavor
        eventually(lambda: any(c.allocated for c in flavor_devices.of_flavors([flavor])[flavor.pk].gpus))
        uuid_of = {gpu.key: gpu.uuid for gpu in flavor_devices.of_flavors([flavor])[flavor.pk].gpus}
        yield uuid_of[device["pool"], device["device"]]
    finally:
        admin.delete("namespace", name)
        admin.delete("pod", "user", name, gracePeriodSeconds=0)
        claims = MirrorObject.objects.filter(kind="ResourceClaim", namespace=name)
        eventually(lambda: not claims.exists(), within_s=60)
