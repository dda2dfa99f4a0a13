"""What pods and claims of allocations use beyond their leases: recorded once no interval of the ledger covers it."""

import random
from datetime import datetime
from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.models import Allocation
from allocations.reconcile.metering import open_intervals
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.metering.models import ForeignUse, UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import DEVICES, at, claim, hold, hold_quota, raw, seen

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


@pytest.fixture
def train(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of one l40s."""
    fleet(team)
    return allocate(member, project, name="train")


@pytest.fixture
def device(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of one h100 by DRA."""
    fleet(team)
    return allocate(member, project, "h100/whole", name="device")


def pod(
    row: Allocation, revision: int, gpus: int = 1, phase: str = "Running", resource: str = GPU, **metadata: Any
) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {resource: str(gpus)}}}
    body = raw("Pod", row, "trainer", revision, spec={"nodeName": "l40s-0", "containers": [container]})
    body["metadata"] |= {"uid": "trainer", **metadata}
    return body | {"status": {"phase": phase}}


def of_class(row: Allocation, body: dict[str, Any]) -> dict[str, Any]:
    """Return the pod with the class of the hold and without its label."""
    body["spec"]["priorityClassName"] = names.hold_slot(row.number)
    body["metadata"]["labels"] = {}
    return body


def watch(second: float, *bodies: dict[str, Any], gone: bool = False) -> None:
    record_observations(LOCAL, [seen(body, second, gone=gone) for body in bodies])


def listed(second: float, kind: str, revision: int, *bodies: dict[str, Any]) -> None:
    record_list(LOCAL, KINDS[kind], [seen(body, second, live=False) for body in bodies], revision, at(second))


def unmanaged() -> list[tuple[str, int, datetime, datetime | None]]:
    rows = ForeignUse.objects.order_by("start", "slot")
    return [(row.name, row.count, row.start, row.end) for row in rows]


def held() -> list[tuple[int, datetime, datetime | None]]:
    return [(row.count, row.start, row.end) for row in UsageInterval.objects.order_by("start", "slot")]


def test_a_pod_is_unmanaged_from_when_its_allocation_holds_nothing_any_more(train: Allocation) -> None:
    watch(0, hold_quota(train, 1))
    watch(10, pod(train, 2))
    assert unmanaged() == []
    watch(60, hold_quota(train, 3, listed=False))
    watch(90, pod(train, 4, phase="Succeeded"))
    assert held() == [(1, at(0), at(60))]
    assert unmanaged() == [(GPU, 1, at(60), at(90))]


def test_a_pod_is_unmanaged_until_its_allocation_is_held(train: Allocation) -> None:
    watch(0, pod(train, 1))
    watch(60, hold_quota(train, 2))
    assert unmanaged() == [(GPU, 1, at(0), at(60))]
    assert held() == [(1, at(60), None)]


def test_what_pods_use_beyond_the_count_is_charged_and_so_not_unmanaged(train: Allocation) -> None:
    watch(0, hold_quota(train, 1))
    watch(10, pod(train, 2, gpus=3))
    assert unmanaged() == []
    assert held() == [(1, at(0), None), (2, at(10), None)]


def test_another_resource_than_the_lease_has_is_unmanaged(train: Allocation) -> None:
    watch(0, hold_quota(train, 1))
    watch(10, pod(train, 2, resource="nvidia.com/mig-1g.10gb"))
    assert unmanaged() == [("nvidia.com/mig-1g.10gb", 1, at(10), None)]


def test_a_pod_that_loses_the_label_of_an_allocation_without_a_hold_is_used_once(train: Allocation) -> None:
    watch(0, pod(train, 1))
    watch(60, pod(train, 2, labels={}))
    watch(90, pod(train, 3, phase="Succeeded", labels={}))
    assert {row[1:3] for row in unmanaged()} == {(1, at(0))}
    assert [row[3] for row in unmanaged()] == [at(90)]


def test_it_is_told_with_namespace_and_controller(train: Allocation) -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    watch(0, pod(train, 1, ownerReferences=[owner]))
    row = ForeignUse.objects.get()
    assert (row.namespace, row.consumer, row.owner_kind) == (train.project.namespace, "trainer", "ReplicaSet")


def test_the_claim_of_an_allocation_is_its_own_before_it_is_held_too(device: Allocation) -> None:
    watch(0, claim(device, 1, DEVICES))
    record_observations(LOCAL, hold(device, 60))
    assert unmanaged() == []
    assert [row[1] for row in held()] == [at(60)]


def test_a_claim_that_only_has_an_allocations_label_is_unmanaged(device: Allocation) -> None:
    record_observations(LOCAL, hold(device))
    body = claim(device, 20, [{**DEVICES[0], "device": "gpu-2"}])
    body["metadata"] |= {"name": "other", "uid": "other"}
    watch(10, body)
    assert unmanaged() == [("gpu-2", 1, at(10), None)]


def test_a_claim_of_an_allocation_that_has_ended_is_unmanaged(device: Allocation) -> None:
    Allocation.objects.update(ended_at=clock.now(), desired="released", phase="ended", outcome="released")
    watch(0, claim(device, 1, DEVICES))
    watch(60, claim(device, 2, []))
    assert unmanaged() == [("gpu-1", 1, at(0), at(60))]


def test_a_list_records_pods_of_a_hold_that_is_gone(train: Allocation) -> None:
    watch(0, hold_quota(train, 1))
    listed(0, "Pod", 5, of_class(train, pod(train, 2)))
    assert unmanaged() == []
    watch(60, hold_quota(train, 7, listed=False))
    listed(90, "Pod", 9, of_class(train, pod(train, 2)))
    assert [row[:2] for row in unmanaged()] == [(GPU, 1)]


def test_a_list_records_pods_of_the_class_of_no_allocation(train: Allocation) -> None:
    body = of_class(train, pod(train, 2))
    body["spec"]["priorityClassName"] = names.hold_slot(77)
    listed(0, "Pod", 5, body)
    assert [row[:2] for row in unmanaged()] == [(GPU, 1)]


@pytest.mark.parametrize("seed", range(12))
def test_in_any_order_of_events_a_pod_is_held_or_unmanaged_and_never_both(train: Allocation, seed: int) -> None:
    """Twenty random changes of quota and pod, one each ten seconds."""
    rng = random.Random(seed)
    is_listed, is_labelled, is_running = False, True, False
    expected: list[bool] = []
    for step in range(20):
        match rng.choice(["quota", "pod", "label"]):
            case "quota":
                is_listed = not is_listed
                watch(10 * step, hold_quota(train, step + 1, listed=is_listed))
            case "pod":
                is_running = not is_running
                watch(10 * step, _pod(train, step + 1, is_labelled=is_labelled, is_running=is_running))
            case "label":
                is_labelled = not is_labelled
                watch(10 * step, _pod(train, step + 1, is_labelled=is_labelled, is_running=is_running))
        expected.append(is_running and not (is_listed and is_labelled))
    rows = unmanaged()
    for step, is_unmanaged in enumerate(expected):
        moment = at(10 * step + 5)
        open_then = [row for row in rows if row[2] <= moment and (row[3] is None or row[3] > moment)]
        assert len(open_then) == is_unmanaged, step
    assert [one.message for one in open_intervals.differences(LOCAL)] == []


def _pod(row: Allocation, revision: int, *, is_labelled: bool, is_running: bool) -> dict[str, Any]:
    body = pod(row, revision, phase="Running" if is_running else "Succeeded")
    if not is_labelled:
        body["metadata"]["labels"] = {}
    return body
