"""What the ledger has open, compared with what the mirror shows: each difference is found, in both directions."""

from typing import Any
from uuid import uuid4

import pytest

from allocations.cluster import names
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.metering import open_intervals
from allocations.reconcile.mirror_writer import record_observations
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.metering import services as metering
from quotas.metering.balance import Check
from quotas.metering.models import ForeignUse, UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import at, hold, raw, seen
from tests.support.queued import GPU, job
from tests.support.quotas import attribution, hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
DRA: dict[str, Any] = {"driver": "gpu.nvidia.com", "pool": "h100-0"}


@pytest.fixture
def by_count(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of two l40s that is held, with a pod that uses one."""
    fleet(team)
    row = allocate(member, project, name="train", count=2)
    slices = {"slices": {row.name: {GPU: 2}}, "shown": True}
    mirrored("ResourceQuota", names.hold_slot(row.number), slices, namespace=project.namespace)
    metering.open_interval(
        uuid4(),
        row.pk,
        f"{LOCAL}/{row.pk}",
        hour(0),
        attribution(member=member.username),
        2,
        {"kind": "ResourceQuota", "name": "q"},
    )
    pod(namespace=project.namespace, allocation=row.name)
    return row


@pytest.fixture
def by_device(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of an h100 that is held."""
    fleet(team)
    row = allocate(member, project, "h100/whole", name="device")
    record_observations(LOCAL, hold(row))
    return row


def mirrored(kind: str, name: str, facts: dict[str, Any], namespace: str = "elsewhere", allocation: str = "") -> str:
    uid = str(uuid4())
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind=kind,
        namespace=namespace,
        name=name,
        uid=uid,
        resource_version=7,
        allocation=allocation,
        facts=facts,
        seen_at=clock.now(),
    )
    return uid


def pod(name: str = "trainer", namespace: str = "elsewhere", allocation: str = "", **facts: Any) -> str:
    return mirrored(
        "Pod", name, {"phase": "Running", "node": "l40s-0", "gpus": {GPU: 1}, **facts}, namespace, allocation
    )


def found() -> list[tuple[Check, str, str, str]]:
    return [(one.check, one.node, one.name, one.message) for one in open_intervals.differences(LOCAL)]


def test_what_is_held_and_used_as_the_mirror_shows_it_differs_in_nothing(
    by_count: Allocation, by_device: Allocation
) -> None:
    assert found() == []


def test_a_count_that_is_held_without_an_interval_is_found(by_count: Allocation) -> None:
    UsageInterval.objects.all().delete()
    words = f"Allocation {by_count} holds 2 nvidia.com/gpu, and the ledger has no open interval of it."
    pods = f"Pod {by_count.project.namespace}/trainer uses nvidia.com/gpu of node l40s-0, and the ledger has it neither"
    assert found() == [
        (Check.HELD_AS_OBSERVED, "", f"{LOCAL}/{by_count.pk}", words),
        (Check.USE_HAS_CATEGORY, "l40s-0", GPU, f"{pods} as held nor as unmanaged."),
    ]


def test_a_device_that_is_held_without_an_interval_is_found(by_device: Allocation) -> None:
    UsageInterval.objects.all().delete()
    words = f"Allocation {by_device} holds gpu-1 of node h100-0, and the ledger has no open interval of it."
    assert found() == [(Check.HELD_AS_OBSERVED, "h100-0", f"{LOCAL}/h100-0/gpu-1", words)]


def test_an_interval_of_a_device_that_nobody_holds_any_more_is_found(by_device: Allocation) -> None:
    MirrorObject.objects.filter(kind="ResourceClaim").delete()
    [difference] = open_intervals.differences(LOCAL)
    assert (difference.check, difference.name) == (Check.HELD_AS_OBSERVED, f"{LOCAL}/h100-0/gpu-1")
    assert difference.found == "open since 2026-11-02 12:00:00 UTC"
    assert difference.message == (
        f"The ledger has local/h100-0/gpu-1 held by allocation {by_device.pk} of project vision-train, "
        "and the cluster does not show it held."
    )


def test_an_interval_of_an_allocation_that_has_ended_is_found(by_count: Allocation) -> None:
    Allocation.objects.update(ended_at=clock.now(), desired="released", phase="ended", outcome="released")
    assert [check for check, *_ in found()] == [Check.HELD_AS_OBSERVED, Check.USE_HAS_CATEGORY]


def test_an_interval_of_no_allocation_at_all_is_found(by_count: Allocation) -> None:
    row = used(hour(0), None)
    [(check, _, name, _)] = found()
    assert (check, name) == (Check.HELD_AS_OBSERVED, row.slot)


def test_a_pod_that_nothing_counts_is_found(by_count: Allocation) -> None:
    pod("miner")
    words = "Pod elsewhere/miner uses nvidia.com/gpu of node l40s-0, and the ledger has it neither as held"
    assert found() == [(Check.USE_HAS_CATEGORY, "l40s-0", GPU, f"{words} nor as unmanaged.")]


@pytest.mark.parametrize("facts", [{"node": ""}, {"phase": "Succeeded"}, {"extended_claim": "made-for-it"}])
def test_a_pod_that_uses_no_gpu_now_needs_no_category(by_count: Allocation, facts: dict[str, Any]) -> None:
    pod("miner", **facts)
    assert found() == []


def test_an_unlabelled_pod_of_a_holds_class_is_counted_by_the_hold(by_count: Allocation) -> None:
    pod("plain", by_count.project.namespace, **{"class": names.hold_slot(by_count.number)})
    assert found() == []
    pod("other", by_count.project.namespace, **{"class": names.hold_slot(99)})
    assert [check for check, *_ in found()] == [Check.USE_HAS_CATEGORY]


def test_a_claim_that_nothing_counts_is_found(by_count: Allocation) -> None:
    mirrored("ResourceClaim", "one", {"devices": [{"request": "r", "device": "gpu-0", **DRA}]})
    words = (
        "ResourceClaim elsewhere/one uses gpu-0 of node h100-0, and the ledger has it neither as held nor as unmanaged."
    )
    assert found() == [(Check.USE_HAS_CATEGORY, "h100-0", "gpu-0", words)]


def test_a_claim_that_only_calls_itself_an_allocations_is_found(by_device: Allocation) -> None:
    facts = {"devices": [{"request": "r", "device": "gpu-0", **DRA}]}
    mirrored("ResourceClaim", "stolen", facts, by_device.project.namespace, by_device.name)
    assert [(check, name) for check, _, name, _ in found()] == [(Check.USE_HAS_CATEGORY, "gpu-0")]


def test_another_drivers_claim_needs_no_category(by_count: Allocation) -> None:
    mirrored(
        "ResourceClaim", "one", {"devices": [{"request": "r", "device": "nic-0", **DRA, "driver": "other.example"}]}
    )
    assert found() == []


def test_a_claim_of_an_allocation_that_is_not_held_yet_is_idle(team: Team, member: User, project: Project) -> None:
    fleet(team)
    row = allocate(member, project, "h100/whole", name="starting")
    record_observations(LOCAL, hold(row)[:1])
    assert UsageInterval.objects.count() == 0
    assert found() == []


def test_use_without_an_allocation_is_unmanaged_until_the_mirror_shows_that_it_ended(by_count: Allocation) -> None:
    body = raw("Pod", by_count, "trainer-2", 3)
    body["metadata"] |= {"namespace": "elsewhere", "labels": {}, "uid": "trainer-2"}
    container = {"name": "main", "resources": {"limits": {GPU: "1"}}}
    body |= {"spec": {"nodeName": "l40s-0", "containers": [container]}, "status": {"phase": "Running"}}
    record_observations(LOCAL, [seen(body, 0)])
    assert ForeignUse.objects.filter(end=None).count() == 1
    assert found() == []
    MirrorObject.objects.filter(name="trainer-2").update(allocation=by_count.name)
    assert found() == []
    MirrorObject.objects.filter(name="trainer-2").delete()
    words = "The ledger has nvidia.com/gpu of node l40s-0 used by elsewhere/trainer-2, and it is not."
    assert found() == [(Check.USE_HAS_CATEGORY, "l40s-0", GPU, words)]


def test_a_job_whose_reservation_is_not_charged_is_found(by_count: Allocation) -> None:
    reserved = {"QuotaReserved": {"status": "True", "at": at(0).isoformat(), "reason": "", "message": ""}}
    queue = {"cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}, "conditions": reserved}
    uid = job("own", by_count.project.namespace, **queue)
    words = f"The Job {uid} in vision-train has reserved another amount than the ledger has open."
    assert found() == [(Check.HELD_AS_OBSERVED, "", str(uid), words)]


def test_an_interval_of_a_jobs_pod_that_is_gone_is_found(by_count: Allocation) -> None:
    uid = pod("own-0", by_count.project.namespace)
    slot = f"{LOCAL}/pod:{uid}/{GPU}"
    key = uuid4()
    metering.open_interval(key, uuid4(), slot, hour(0), attribution(member=""), 1, {"kind": "Pod", "uid": uid})
    assert found() == []
    MirrorObject.objects.filter(uid=uid).delete()
    assert [(check, name) for check, _, name, _ in found()] == [(Check.HELD_AS_OBSERVED, slot)]


def test_the_comparison_takes_the_same_queries_however_much_there_is(
    by_count: Allocation, by_device: Allocation, member: User
) -> None:
    def grow() -> None:
        for n in range(10):
            row = allocate(member, by_count.project, name=f"more-{n}")
            slices = {"slices": {row.name: {GPU: 1}}, "shown": True}
            mirrored("ResourceQuota", names.hold_slot(row.number), slices, namespace=row.project.namespace)
            pod(f"more-{n}", row.project.namespace, row.name)
            pod(f"stray-{n}")

    assert_constant(found, grow, at_most=15)
    assert len(found()) == 30
