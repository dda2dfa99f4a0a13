"""Queued Jobs on GPUs by DRA in the ledger: each device of a pod is charged once."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.job_observations import BOUND, JOB, at, charged_gpus, metadata_of, pod, seen, unused, workload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(team, project):
    return fleet(team)


CLAIM = "train-a-extended-resources-x7"


def extended_claim(*devices: str, revision: int, pod: str = "train-a", name: str = CLAIM) -> dict[str, Any]:
    """Return the claim that the scheduler creates for a pod that requests nvidia.com/gpu on a node by DRA."""
    results = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": one} for one in devices]
    allocation = {"devices": {"results": results}, "allocationTimestamp": BOUND} if devices else {}
    owner = {"kind": "Pod", "name": pod, "uid": pod, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = metadata_of(name, revision, ownerReferences=[owner], annotations=annotations)
    return {"kind": "ResourceClaim", "metadata": metadata, "status": {"allocation": allocation}}


def dra_pod(revision: int, node: str = "", phase: str = "Pending") -> dict[str, Any]:
    manifest = pod(node=node, phase=phase, revision=revision)
    manifest["status"] |= {"extendedResourceClaimStatus": {"resourceClaimName": CLAIM}} if node else {}
    return manifest


def device_intervals() -> list[tuple[str, str, datetime, datetime | None]]:
    rows = UsageInterval.objects.filter(unused=False).order_by("slot", "start")
    return [(row.slot, row.device_uuid, row.start, row.end) for row in rows]


def test_a_job_by_dra_is_charged_for_each_device_that_its_pod_was_given() -> None:
    record_observations(
        LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10), 1), seen(extended_claim(revision=11), 2)]
    )
    assert unused() == [(at(0), None, 2)]
    record_observations(
        LOCAL, [seen(extended_claim("gpu-1", "gpu-2", revision=12), 3), seen(dra_pod(13, "h100-0", "Running"), 4)]
    )
    slots = [("local/h100-0/gpu-1", "GPU-1"), ("local/h100-0/gpu-2", "GPU-2")]
    assert device_intervals() == [(*slot, at(3), None) for slot in slots]
    assert unused() == [(at(0), at(3), 2)]
    row = UsageInterval.objects.filter(unused=False)[0]
    assert (row.holder_id, row.offering, row.estimated_start) == (UUID(JOB), "h100/whole", False)
    record_observations(LOCAL, [seen(extended_claim("gpu-1", "gpu-2", revision=20), 30, gone=True)])
    assert device_intervals() == [(*slot, at(3), at(30)) for slot in slots]
    assert unused() == [(at(0), at(3), 2), (at(30), None, 2)]


def test_devices_of_a_jobs_pod_are_charged_once_however_often_they_are_seen() -> None:
    batch = [extended_claim("gpu-1", "gpu-2", revision=12), dra_pod(13, "h100-0", "Running"), workload(flavor="h100")]
    record_observations(LOCAL, [seen(each, 3) for each in batch])
    record_observations(LOCAL, [seen(each, 9) for each in batch])
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(batch[0], 20, live=False)], 30, at(20))
    reconcile_inventory(LOCAL)
    assert [(start, end) for *_, start, end in device_intervals()] == [(at(-60), None)] * 2
    assert charged_gpus(25) == 2


def test_devices_of_a_claim_that_vanished_unseen_are_charged_until_the_last_sighting() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10), 1)])
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(extended_claim("gpu-1", "gpu-2", revision=12), 5)], 12, at(5))
    record_list(LOCAL, KINDS["ResourceClaim"], [], 90, at(600))
    assert [(end, charged_gpus(4.9), charged_gpus(5)) for *_, end in device_intervals()] == [(at(5), 2, 2)] * 2
    assert unused()[-1] == (at(5), None, 2)


def test_a_claim_that_a_pod_does_not_name_is_not_its_jobs() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10, "h100-0", "Running"), 1)])
    record_observations(LOCAL, [seen(extended_claim("gpu-3", revision=12, name="another"), 2)])
    assert device_intervals() == []


def test_what_nobody_recorded_of_devices_is_repaired_from_the_mirror() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100", since="2026-11-02T11:58:00Z"), 0), seen(dra_pod(10), 1)])
    record_observations(
        LOCAL, [seen(extended_claim("gpu-1", "gpu-2", revision=12), 3), seen(dra_pod(13, "h100-0", "Running"), 4)]
    )
    UsageInterval.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert [(start, end) for *_, start, end in device_intervals()] == [(at(-60), None)] * 2
    assert unused() == [(at(-120), at(-60), 2)]
    MirrorObject.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert not UsageInterval.objects.filter(end=None).exists()
