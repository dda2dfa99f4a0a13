"""Tenants' own queued Jobs in the ledger: charged for the larger of reservation and use, and counted once."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.capacity.headroom import Availability
from allocations.capacity.snapshot import Capacity, CapacitySnapshot
from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations, start_anew
from portal.core import clock
from portal.tenants.models import Team
from quotas.catalog.models import Offering, PoolUse
from quotas.catalog.types import NodeFact
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.gpu_facts import plugin_node

pytestmark = pytest.mark.django_db

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
BOUND = "2026-11-02T11:59:00Z"
GPU = "nvidia.com/gpu"
JOB = str(uuid4())


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def there(team, project):
    return fleet(team)


def _metadata(name: str, revision: int, **more: Any) -> dict[str, Any]:
    owner = {"kind": "Job", "name": "train", "uid": JOB, "controller": True}
    common = {"namespace": "vision-train", "uid": name, "resourceVersion": str(revision), "ownerReferences": [owner]}
    return {"name": name, **common, **more}


def pod(name: str = "train-a", node: str = "l40s-0", phase: str = "Running", revision: int = 10) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {GPU: "2"}}}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND}
    status = {"phase": phase, "conditions": [bound] if node else []}
    spec = {"nodeName": node, "containers": [container]}
    return {"kind": "Pod", "metadata": _metadata(name, revision), "spec": spec, "status": status}


def workload(
    namespace: str = "vision-train",
    revision: int = 5,
    pods: int = 1,
    done: int = 0,
    admitted: bool = True,
    since: str = "",
    flavor: str = "l40s",
) -> dict[str, Any]:
    """Return a Job of this many pods with two GPUs each, some of them finished."""
    usage = {GPU: str(2 * pods)}
    assignment = {"name": "main", "count": pods, "flavors": {GPU: flavor}, "resourceUsage": usage}
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": since}
    status: dict[str, Any] = {"reclaimablePods": [{"name": "main", "count": done}]}
    if admitted:
        status |= {"admission": {"clusterQueue": "team-vision", "podSetAssignments": [assignment]}}
        status |= {"conditions": [reserved]} if since else {}
    return {
        "kind": "Workload",
        "metadata": _metadata("job-train-1a2b3", revision, namespace=namespace),
        "spec": {"queueName": names.LOCAL_QUEUE, "podSets": []},
        "status": status,
    }


def nodes() -> list[Observation]:
    """Create the two l40s nodes of the fleet, as the watcher would mirror them."""
    return [seen(_node(plugin_node(f"l40s-{number}")), 0) for number in range(2)]


def _node(fact: NodeFact) -> dict[str, Any]:
    taints = [{"key": key, "value": value, "effect": effect} for key, value, effect in fact.taints]
    ready = {"type": "Ready", "status": "True"}
    return {
        "kind": "Node",
        "metadata": {"name": fact.name, "uid": fact.name, "resourceVersion": "1", "labels": dict(fact.labels)},
        "spec": {"taints": taints},
        "status": {"allocatable": fact.allocatable, "capacity": fact.capacity, "conditions": [ready]},
    }


def seen(body: dict[str, Any], seconds: float, *, live: bool = True, gone: bool = False) -> Observation:
    found = kinds.observe(KINDS[body["kind"]], body, at=at(seconds), live=live, gone=gone)
    assert found is not None
    return found


def capacity() -> Capacity:
    return CapacitySnapshot().capacity(Offering.objects.get(key="l40s/whole"))


def intervals() -> list[tuple[datetime, datetime | None, bool, bool]]:
    """Return the intervals of what pods used."""
    rows = UsageInterval.objects.filter(unused=False).order_by("start", "slot")
    return [(row.start, row.end, row.estimated_start, row.estimated_end) for row in rows]


def unused() -> list[tuple[datetime, datetime | None, int]]:
    """Return the intervals of what was reserved and used by no pod, without those of zero length."""
    rows = UsageInterval.objects.filter(unused=True).order_by("start", "recorded_at")
    return [(row.start, row.end, row.count) for row in rows if row.start != row.end]


def bill(seconds: float) -> int:
    """Return the GPUs charged at a moment."""
    rows = UsageInterval.objects.filter(start__lte=at(seconds))
    return sum(row.count for row in rows if row.end is None or row.end > at(seconds))


def test_a_job_is_billed_from_the_binding_of_its_pod_until_that_is_finished() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(node="", phase="Pending"), 1)])
    assert intervals() == []
    record_observations(LOCAL, [seen(pod(revision=11), 2)])
    record_observations(LOCAL, [seen(pod(phase="Succeeded", revision=12), 60)])
    assert intervals() == [(at(2), at(60), False, False)]


def test_a_job_whose_pods_are_never_bound_is_charged_from_its_admission_until_it_is_gone() -> None:
    record_observations(LOCAL, [seen(workload(admitted=False, revision=4), 0), seen(pod(node="", phase="Pending"), 1)])
    assert unused() == []
    record_observations(LOCAL, [seen(workload(), 5)])
    row = UsageInterval.objects.get()
    assert (row.holder_id, row.count, row.offering, row.unused) == (UUID(JOB), 2, "l40s/whole", True)
    assert (row.team, row.project, row.member, row.node, row.device) == ("vision", "vision-train", "", "", "")
    assert (row.slot, row.source_start["kind"]) == (f"local/job:{JOB}/l40s/nvidia.com/gpu", "Workload")
    record_observations(LOCAL, [seen(workload(revision=9), 90, gone=True)])
    assert unused() == [(at(5), at(90), 2)]


def test_pods_that_crash_at_once_leave_no_second_uncharged() -> None:
    record_observations(LOCAL, [seen(workload(), 0)])
    for number in range(3):
        name, start = f"train-{number}", 10 * (number + 1)
        record_observations(LOCAL, [seen(pod(name, revision=20 + number), start)])
        record_observations(LOCAL, [seen(pod(name, phase="Failed", revision=30 + number), start + 1)])
    record_observations(LOCAL, [seen(workload(revision=50), 60, gone=True)])
    assert {bill(second / 2) for second in range(120)} == {2}
    assert bill(60) == 0
    assert [(start, end) for start, end, _, _ in intervals()] == [(at(n), at(n + 1)) for n in (10, 20, 30)]


def test_what_a_finished_pod_had_is_charged_until_kueue_gives_it_back() -> None:
    record_observations(LOCAL, [seen(workload(pods=2), 0), seen(pod("train-a"), 2), seen(pod("train-b", "l40s-1"), 3)])
    record_observations(LOCAL, [seen(pod("train-a", phase="Succeeded", revision=20), 30)])
    assert unused() == [(at(0), at(2), 4), (at(2), at(3), 2), (at(30), None, 2)]
    record_observations(LOCAL, [seen(workload(pods=2, done=1, revision=21), 31)])
    assert unused()[-1] == (at(30), at(31), 2)
    assert [bill(second) for second in (1, 2.5, 10, 30.5, 31)] == [4, 4, 4, 4, 2]


def test_pods_that_end_after_their_quota_went_back_are_charged_until_they_are_gone() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    record_observations(LOCAL, [seen(workload(admitted=False, revision=20), 30)])
    assert (unused(), bill(35)) == ([(at(0), at(2), 2)], 2)
    record_observations(LOCAL, [seen(pod(revision=21), 40, gone=True)])
    assert (intervals(), bill(40)) == ([(at(2), at(40), False, False)], 0)


def test_a_job_admitted_again_while_its_old_pod_ends_is_charged_for_the_larger_of_both() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod("train-old"), 2)])
    record_observations(LOCAL, [seen(workload(admitted=False, revision=20), 30), seen(workload(revision=22), 35)])
    record_observations(LOCAL, [seen(pod("train-new", "l40s-1", revision=23), 36)])
    assert [bill(second) for second in (32, 35.5, 36)] == [2, 2, 4]
    record_observations(LOCAL, [seen(pod("train-old", revision=24), 40, gone=True)])
    assert bill(40) == 2


def test_what_is_reserved_is_counted_in_a_fixed_number_of_queries_however_many_pods_there_are() -> None:
    def asked(pods: int) -> int:
        UsageInterval.objects.all().delete()
        MirrorObject.objects.all().delete()
        found = [seen(pod(f"train-{n}"), 2) for n in range(pods)]
        record_observations(LOCAL, [seen(workload(pods=pods + 1), 0), *found])
        with CaptureQueriesContext(connection) as queries:
            record_observations(LOCAL, [seen(pod("train-last", revision=40), 9)])
        return len(queries)

    assert asked(2) == asked(20)


def test_what_is_billed_says_whose_it_is_and_on_which_node() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    row = UsageInterval.objects.get(unused=False)
    assert (row.holder_id, row.count, row.offering, row.node) == (UUID(JOB), 2, "l40s/whole", "l40s-0")
    assert (row.team, row.project, row.member, row.device) == ("vision", "vision-train", "", "")
    assert row.source_start["job"] == "train"


def test_a_pod_that_was_deleted_is_billed_until_it_is_gone() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod(), 2)])
    record_observations(LOCAL, [seen(pod(revision=20), 30, gone=True)])
    assert intervals() == [(at(2), at(30), False, False)]


def test_a_pod_that_is_bound_after_its_jobs_workload_is_gone_is_billed_all_the_same() -> None:
    """The Job was deleted while the Job controller created its pods, which take their time to end."""
    record_observations(LOCAL, [seen(workload(), 0), seen(workload(revision=6), 1, gone=True), seen(pod(), 2)])
    record_observations(LOCAL, [seen(pod(revision=20), 30, gone=True)])
    assert (at(2), at(30), False, False) in intervals()


def test_pods_seen_before_their_workload_are_billed_from_when_the_cluster_says() -> None:
    record_observations(LOCAL, [seen(pod(), 2)])
    assert intervals() == []
    record_observations(LOCAL, [seen(workload(), 3)])
    assert intervals() == [(T0 - timedelta(minutes=1), None, True, False)]


def test_an_end_that_nobody_saw_is_the_last_sighting() -> None:
    record_list(LOCAL, KINDS["Workload"], [seen(workload(), 0)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0)], 12, at(5))
    record_list(LOCAL, KINDS["Pod"], [], 90, at(600))
    assert [(end, estimated) for _, end, _, estimated in intervals()] == [(at(5), True)]


def test_what_is_seen_again_is_billed_once() -> None:
    batch = [seen(workload(), 0), seen(pod(), 2)]
    record_observations(LOCAL, batch)
    record_observations(LOCAL, [*batch, seen(workload(revision=6), 9), seen(pod(revision=13), 10)])
    assert intervals() == [(at(2), None, False, False)]


def test_a_reservation_that_was_seen_again_is_charged_once() -> None:
    batch = [seen(workload(pods=2), 0), seen(pod(), 2)]
    record_observations(LOCAL, batch)
    record_observations(LOCAL, [*batch, seen(workload(pods=2, revision=6), 9), seen(pod(revision=13), 10)])
    record_list(LOCAL, KINDS["Workload"], [seen(workload(pods=2, revision=6), 20, live=False)], 30, at(20))
    reconcile_inventory(LOCAL)
    assert unused() == [(at(0), at(2), 4), (at(2), None, 2)]


def test_an_admission_that_nobody_watched_is_charged_from_when_the_cluster_says() -> None:
    """Two pods were bound since, the second a minute ago."""
    record_list(LOCAL, KINDS["Workload"], [], 1, at(-600))
    record_list(LOCAL, KINDS["Pod"], [], 1, at(-600))
    reserved = workload(pods=2, since="2026-11-02T11:55:00Z")
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    assert unused() == [(at(-300), at(-60), 4), (at(-60), None, 2)]
    assert intervals() == [(at(-60), None, True, False)]
    assert all(row.estimated_start for row in UsageInterval.objects.all())


def test_a_job_that_vanished_unseen_is_charged_until_the_last_sighting() -> None:
    reserved = workload(pods=2, since="2026-11-02T11:58:00Z")
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [], 90, at(600))
    record_list(LOCAL, KINDS["Workload"], [], 90, at(600))
    assert [bill(second) for second in (-90, -30, 0)] == [4, 4, 0]
    assert not UsageInterval.objects.filter(end=None).exists()


def test_a_job_admitted_anew_while_nobody_watched_owes_nothing_for_the_time_between() -> None:
    record_list(LOCAL, KINDS["Workload"], [seen(workload(since="2026-11-02T11:58:00Z"), 0, live=False)], 12, at(0))
    again = workload(since="2026-11-02T12:05:00Z", revision=40)
    record_list(LOCAL, KINDS["Workload"], [seen(again, 600, live=False)], 90, at(600))
    assert unused() == [(at(-120), at(0), 2), (at(300), None, 2)]


def test_a_job_that_a_backup_brought_back_is_charged_from_when_it_is_found() -> None:
    reserved, finished = workload(since="2026-11-02T11:58:00Z"), workload(admitted=False, revision=40)
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(finished, 60)])
    start_anew(LOCAL)
    with clock.frozen(at(3600)):
        record_list(LOCAL, KINDS["Workload"], [seen(reserved, 3600, live=False)], 20, at(3600))
    assert unused() == [(at(-120), at(60), 2), (at(3600), None, 2)]


def test_a_job_that_a_backup_brought_back_owes_nothing_of_before_though_its_pods_used_all_of_it() -> None:
    """They were bound in the second of its admission, and ended after its quota was released: nothing was ever
    unused.
    """
    reserved = workload(since=BOUND)
    record_list(LOCAL, KINDS["Pod"], [seen(pod(), 0, live=False)], 12, at(0))
    record_list(LOCAL, KINDS["Workload"], [seen(reserved, 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(workload(revision=40), 60, gone=True), seen(pod(revision=41), 62, gone=True)])
    start_anew(LOCAL)
    with clock.frozen(at(3600)):
        record_list(LOCAL, KINDS["Workload"], [seen(reserved, 3600, live=False)], 20, at(3600))
    assert [bill(second) for second in (30, 62, 3599, 3600)] == [2, 0, 0, 2]


@pytest.mark.parametrize("order", [("Workload", "Pod"), ("Pod", "Workload")])
def test_pods_of_a_job_that_a_backup_brought_back_are_charged_for_what_they_use_and_counted_once(
    order: tuple[str, str],
) -> None:
    before = {"Workload": workload(since="2026-11-02T11:58:00Z"), "Pod": pod()}
    record_observations(LOCAL, nodes())
    for kind in order:
        record_list(LOCAL, KINDS[kind], [seen(before[kind], 0, live=False)], 12, at(0))
    record_observations(LOCAL, [seen(pod(revision=40), 60, gone=True), seen(workload(revision=41), 60, gone=True)])
    start_anew(LOCAL)
    with clock.frozen(at(3600)):
        for kind in order:
            record_list(LOCAL, KINDS[kind], [seen(before[kind], 3600, live=False)], 20, at(3600))
        reconcile_inventory(LOCAL)
    assert intervals()[1:] == [(at(3600), None, True, False)]
    assert (unused()[1:], bill(3599), bill(3600)) == ([], 0, 2)
    assert capacity() == Capacity(total=8, held=2, free=6)


def test_what_nobody_recorded_is_repaired_from_the_mirror() -> None:
    """As after an upgrade from a portal that charged pods only, or after a restore of the ledger."""
    record_observations(LOCAL, [*nodes(), seen(workload(pods=2, since="2026-11-02T11:58:00Z"), 0), seen(pod(), 2)])
    UsageInterval.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert unused() == [(at(-120), at(-60), 4), (at(-60), None, 2)]
    assert intervals() == [(at(-60), None, True, False)]
    MirrorObject.objects.exclude(kind="Node").delete()
    reconcile_inventory(LOCAL)
    assert not UsageInterval.objects.filter(end=None).exists()


def test_a_reservation_of_what_is_not_offered_yet_is_charged_once_it_is() -> None:
    record_observations(LOCAL, [*nodes(), seen(workload(flavor="t4", since="2026-11-02T11:58:00Z"), 0)])
    reconcile_inventory(LOCAL)
    assert unused() == []
    node = plugin_node("t4-0", "Tesla-T4", {GPU: 4}, "15360")
    record_observations(LOCAL, [seen(_node(node), 30)])
    reconcile_inventory(LOCAL)
    reconcile_inventory(LOCAL)
    assert unused() == [(at(-120), None, 2)]


CLAIM = "train-a-extended-resources-x7"


def made_claim(*devices: str, revision: int, pod: str = "train-a", name: str = CLAIM) -> dict[str, Any]:
    """Return the claim that the scheduler creates for a pod that requests nvidia.com/gpu on a node by DRA."""
    given = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": one} for one in devices]
    allocation = {"devices": {"results": given}, "allocationTimestamp": BOUND} if devices else {}
    owner = {"kind": "Pod", "name": pod, "uid": pod, "controller": True}
    made = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = _metadata(name, revision, ownerReferences=[owner], annotations=made)
    return {"kind": "ResourceClaim", "metadata": metadata, "status": {"allocation": allocation}}


def dra_pod(revision: int, node: str = "", phase: str = "Pending") -> dict[str, Any]:
    found = pod(node=node, phase=phase, revision=revision)
    found["status"] |= {"extendedResourceClaimStatus": {"resourceClaimName": CLAIM}} if node else {}
    return found


def given() -> list[tuple[str, str, datetime, datetime | None]]:
    rows = UsageInterval.objects.filter(unused=False).order_by("slot", "start")
    return [(row.slot, row.device_uuid, row.start, row.end) for row in rows]


def test_a_job_by_dra_is_charged_for_each_device_that_its_pod_was_given() -> None:
    record_observations(
        LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10), 1), seen(made_claim(revision=11), 2)]
    )
    assert unused() == [(at(0), None, 2)]
    record_observations(
        LOCAL, [seen(made_claim("gpu-1", "gpu-2", revision=12), 3), seen(dra_pod(13, "h100-0", "Running"), 4)]
    )
    slots = [("local/h100-0/gpu-1", "GPU-1"), ("local/h100-0/gpu-2", "GPU-2")]
    assert given() == [(*slot, at(3), None) for slot in slots]
    assert unused() == [(at(0), at(3), 2)]
    row = UsageInterval.objects.filter(unused=False)[0]
    assert (row.holder_id, row.offering, row.estimated_start) == (UUID(JOB), "h100/whole", False)
    record_observations(LOCAL, [seen(made_claim("gpu-1", "gpu-2", revision=20), 30, gone=True)])
    assert given() == [(*slot, at(3), at(30)) for slot in slots]
    assert unused() == [(at(0), at(3), 2), (at(30), None, 2)]


def test_devices_of_a_jobs_pod_are_charged_once_however_often_they_are_seen() -> None:
    batch = [made_claim("gpu-1", "gpu-2", revision=12), dra_pod(13, "h100-0", "Running"), workload(flavor="h100")]
    record_observations(LOCAL, [seen(each, 3) for each in batch])
    record_observations(LOCAL, [seen(each, 9) for each in batch])
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(batch[0], 20, live=False)], 30, at(20))
    reconcile_inventory(LOCAL)
    assert [(start, end) for *_, start, end in given()] == [(at(-60), None)] * 2
    assert bill(25) == 2


def test_devices_of_a_claim_that_vanished_unseen_are_charged_until_the_last_sighting() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10), 1)])
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(made_claim("gpu-1", "gpu-2", revision=12), 5)], 12, at(5))
    record_list(LOCAL, KINDS["ResourceClaim"], [], 90, at(600))
    assert [(end, bill(4.9), bill(5)) for *_, end in given()] == [(at(5), 2, 2)] * 2
    assert unused()[-1] == (at(5), None, 2)


def test_a_claim_that_a_pod_does_not_name_is_not_its_jobs() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100"), 0), seen(dra_pod(10, "h100-0", "Running"), 1)])
    record_observations(LOCAL, [seen(made_claim("gpu-3", revision=12, name="another"), 2)])
    assert given() == []


def test_what_nobody_recorded_of_devices_is_repaired_from_the_mirror() -> None:
    record_observations(LOCAL, [seen(workload(flavor="h100", since="2026-11-02T11:58:00Z"), 0), seen(dra_pod(10), 1)])
    record_observations(
        LOCAL, [seen(made_claim("gpu-1", "gpu-2", revision=12), 3), seen(dra_pod(13, "h100-0", "Running"), 4)]
    )
    UsageInterval.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert [(start, end) for *_, start, end in given()] == [(at(-60), None)] * 2
    assert unused() == [(at(-120), at(-60), 2)]
    MirrorObject.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert not UsageInterval.objects.filter(end=None).exists()


def test_each_pod_of_a_job_is_billed_for_itself() -> None:
    record_observations(LOCAL, [seen(workload(), 0), seen(pod("train-a"), 2), seen(pod("train-b", "l40s-1"), 3)])
    record_observations(LOCAL, [seen(pod("train-a", phase="Failed", revision=20), 9)])
    assert intervals() == [(at(2), at(9), False, False), (at(3), None, False, False)]


def test_a_job_that_no_queue_admitted_is_foreign_use_and_billed_to_nobody() -> None:
    record_observations(LOCAL, [seen(pod(), 2)])
    assert intervals() == []


def test_a_job_outside_all_projects_is_billed_to_nobody() -> None:
    stranger = pod()
    stranger["metadata"]["namespace"] = "elsewhere"
    record_observations(LOCAL, [seen(workload("elsewhere"), 0), seen(stranger, 2)])
    assert intervals() == []


def test_a_pod_on_a_node_that_is_not_known_yet_is_billed_once_it_is() -> None:
    """A node joins, and its first pod is bound before the inventory has read the node."""
    record_observations(LOCAL, [*nodes(), seen(workload(), -90), seen(pod(node="l40s-2"), 2)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()) == ([], [(at(-90), None, 2)])
    record_observations(LOCAL, [seen(_node(plugin_node("l40s-2")), 30)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()) == ([(at(-60), None, True, False)], [(at(-90), at(-60), 2)])
    assert PoolUse.objects.get(pool__key="l40s/gpu").foreign == 0
    record_observations(LOCAL, [seen(pod(node="l40s-2", phase="Succeeded", revision=40), 60)])
    reconcile_inventory(LOCAL)
    assert (intervals(), unused()[-1]) == ([(at(-60), at(60), True, False)], (at(60), None, 2))


def test_a_repeated_change_of_a_jobs_workload_asks_no_more_for_what_is_billed() -> None:
    pods = [seen(pod(f"train-{n}"), 2) for n in range(20)]
    record_observations(LOCAL, [seen(workload(), 0), *pods])
    with CaptureQueriesContext(connection) as asked:
        record_observations(LOCAL, [seen(workload(revision=6), 9)])
    assert len(intervals()) == 20
    assert not unused()[1:]
    assert not [query for query in asked.captured_queries if "advisory" in query["sql"] and "slot" in query["sql"]]


def test_gpus_of_a_job_are_counted_once_as_held() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(workload(), 0), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total, 2, before.free - 2)


def test_gpus_that_a_job_has_reserved_are_no_longer_free_before_its_pods_use_them() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(workload(pods=2), 0), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total, 4, before.free - 4)


def test_gpus_of_a_pod_that_nobody_queued_are_no_part_of_what_is_offered() -> None:
    before = capacity()
    record_observations(LOCAL, [*nodes(), seen(pod(), 2)])
    reconcile_inventory(LOCAL)
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total - 2, 0, before.free - 2)


def test_a_jobs_use_of_the_teams_quota_leaves_less_to_get(team: Team) -> None:
    offering = Offering.objects.get(key="l40s/whole")
    before = Availability([team]).headroom(team, offering).can_get_now
    record_observations(LOCAL, [seen(workload(), 0)])
    assert Availability([team]).headroom(team, offering).can_get_now == before - 2
