"""Tenants' own queued Jobs in the ledger: billed from binding to the end of each pod, and counted once."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.availability import Capacity, Stock
from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS, Observation
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.observe import record_list, record_observations
from portal.tenants.models import Team
from quotas.catalog.facts import NodeFact
from quotas.catalog.models import Offering, PoolUse
from quotas.metering.models import UsageInterval
from tests.api.fleet import fleet
from tests.gpu_facts import plugin_node

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


def workload(namespace: str = "vision-train", revision: int = 5) -> dict[str, Any]:
    assignment = {"name": "main", "count": 1, "flavors": {GPU: "l40s"}, "resourceUsage": {GPU: "2"}}
    return {
        "kind": "Workload",
        "metadata": _metadata("job-train-1a2b3", revision, namespace=namespace),
        "spec": {"queueName": names.LOCAL_QUEUE, "podSets": []},
        "status": {"admission": {"clusterQueue": "team-vision", "podSetAssignments": [assignment]}},
    }


def nodes() -> list[Observation]:
    """The two l40s nodes of the fleet, as the watcher would find them."""
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
    return Stock().capacity(Offering.objects.get(key="l40s/whole"))


def intervals() -> list[tuple[datetime, datetime | None, bool, bool]]:
    rows = UsageInterval.objects.order_by("start", "slot")
    return [(row.start, row.end, row.estimated_start, row.estimated_end) for row in rows]


def test_a_job_is_billed_from_the_binding_of_its_pod_until_that_is_finished() -> None:
    record_observations([seen(workload(), 0), seen(pod(node="", phase="Pending"), 1)])
    assert intervals() == []
    record_observations([seen(pod(revision=11), 2)])
    record_observations([seen(pod(phase="Succeeded", revision=12), 60)])
    assert intervals() == [(at(2), at(60), False, False)]


def test_what_is_billed_says_whose_it_is_and_on_which_node() -> None:
    record_observations([seen(workload(), 0), seen(pod(), 2)])
    row = UsageInterval.objects.get()
    assert (row.allocation, row.count, row.offering, row.node) == (UUID(JOB), 2, "l40s/whole", "l40s-0")
    assert (row.team, row.project, row.member, row.device) == ("vision", "vision-train", "", "")
    assert row.source_start["job"] == "train"


def test_a_pod_that_was_deleted_is_billed_until_it_is_gone() -> None:
    record_observations([seen(workload(), 0), seen(pod(), 2)])
    record_observations([seen(pod(revision=20), 30, gone=True)])
    assert intervals() == [(at(2), at(30), False, False)]


def test_pods_seen_before_their_workload_are_billed_from_when_the_cluster_says() -> None:
    record_observations([seen(pod(), 2)])
    assert intervals() == []
    record_observations([seen(workload(), 3)])
    assert intervals() == [(T0 - timedelta(minutes=1), None, True, False)]


def test_an_end_that_nobody_saw_is_the_last_sighting() -> None:
    record_list(KINDS["Workload"], [seen(workload(), 0)], 12, at(0))
    record_list(KINDS["Pod"], [seen(pod(), 0)], 12, at(5))
    record_list(KINDS["Pod"], [], 90, at(600))
    assert [(end, estimated) for _, end, _, estimated in intervals()] == [(at(5), True)]


def test_what_is_seen_again_is_billed_once() -> None:
    batch = [seen(workload(), 0), seen(pod(), 2)]
    record_observations(batch)
    record_observations([*batch, seen(workload(revision=6), 9), seen(pod(revision=13), 10)])
    assert intervals() == [(at(2), None, False, False)]


def test_each_pod_of_a_job_is_billed_for_itself() -> None:
    record_observations([seen(workload(), 0), seen(pod("train-a"), 2), seen(pod("train-b", "l40s-1"), 3)])
    record_observations([seen(pod("train-a", phase="Failed", revision=20), 9)])
    assert intervals() == [(at(2), at(9), False, False), (at(3), None, False, False)]


def test_a_job_that_no_queue_admitted_is_foreign_use_and_billed_to_nobody() -> None:
    record_observations([seen(pod(), 2)])
    assert intervals() == []


def test_a_job_outside_all_projects_is_billed_to_nobody() -> None:
    stranger = pod()
    stranger["metadata"]["namespace"] = "elsewhere"
    record_observations([seen(workload("elsewhere"), 0), seen(stranger, 2)])
    assert intervals() == []


def test_a_pod_on_a_node_that_is_not_known_yet_is_billed_once_it_is() -> None:
    """A node joins, and its first pod is bound before anybody has looked at what the node gives."""
    record_observations([*nodes(), seen(workload(), 0), seen(pod(node="l40s-2"), 2)])
    reconcile_inventory()
    assert intervals() == []
    record_observations([seen(_node(plugin_node("l40s-2")), 30)])
    reconcile_inventory()
    assert intervals() == [(T0 - timedelta(minutes=1), None, True, False)]
    assert PoolUse.objects.get(pool__key="l40s/gpu").foreign == 0
    record_observations([seen(pod(node="l40s-2", phase="Succeeded", revision=40), 60)])
    reconcile_inventory()
    assert intervals() == [(T0 - timedelta(minutes=1), at(60), True, False)]


def test_a_repeated_change_of_a_jobs_workload_asks_no_more_for_what_is_billed() -> None:
    pods = [seen(pod(f"train-{n}"), 2) for n in range(20)]
    record_observations([seen(workload(), 0), *pods])
    with CaptureQueriesContext(connection) as asked:
        record_observations([seen(workload(revision=6), 9)])
    assert len(intervals()) == 20
    assert not [query for query in asked.captured_queries if "advisory" in query["sql"] and "slot" in query["sql"]]


def test_gpus_of_a_job_are_counted_once_as_held() -> None:
    before = capacity()
    record_observations([*nodes(), seen(workload(), 0), seen(pod(), 2)])
    reconcile_inventory()
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total, 2, before.free - 2)


def test_gpus_of_a_pod_that_nobody_queued_are_no_part_of_what_is_offered() -> None:
    before = capacity()
    record_observations([*nodes(), seen(pod(), 2)])
    reconcile_inventory()
    after = capacity()
    assert (after.total, after.held, after.free) == (before.total - 2, 0, before.free - 2)


def test_a_jobs_use_of_the_teams_quota_leaves_less_to_get(team: Team) -> None:
    offering = Offering.objects.get(key="l40s/whole")
    before = Stock([team]).mine(team, offering).can_get_now
    record_observations([seen(workload(), 0)])
    assert Stock([team]).mine(team, offering).can_get_now == before - 2
