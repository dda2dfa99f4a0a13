"""A tenant's queued Job as the watcher observes it, and its intervals in the ledger."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS, Observation
from quotas.catalog.types import NodeFact
from quotas.metering.models import UsageInterval
from tests.support.gpu_facts import plugin_node

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
BOUND = "2026-11-02T11:59:00Z"
GPU = "nvidia.com/gpu"
JOB = str(uuid4())


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def metadata_of(name: str, revision: int, **more: Any) -> dict[str, Any]:
    owner = {"kind": "Job", "name": "train", "uid": JOB, "controller": True}
    common = {"namespace": "vision-train", "uid": name, "resourceVersion": str(revision), "ownerReferences": [owner]}
    return {"name": name, **common, **more}


def pod(name: str = "train-a", node: str = "l40s-0", phase: str = "Running", revision: int = 10) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {GPU: "2"}}}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND}
    status = {"phase": phase, "conditions": [bound] if node else []}
    spec = {"nodeName": node, "containers": [container]}
    return {"kind": "Pod", "metadata": metadata_of(name, revision), "spec": spec, "status": status}


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
        "metadata": metadata_of("job-train-1a2b3", revision, namespace=namespace),
        "spec": {"queueName": names.LOCAL_QUEUE, "podSets": []},
        "status": status,
    }


def nodes() -> list[Observation]:
    """Create the two l40s nodes of the fleet, as the watcher would mirror them."""
    return [seen(node_of(plugin_node(f"l40s-{number}")), 0) for number in range(2)]


def node_of(fact: NodeFact) -> dict[str, Any]:
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


def intervals() -> list[tuple[datetime, datetime | None, bool, bool]]:
    """Return the intervals of what pods used."""
    rows = UsageInterval.objects.filter(unused=False).order_by("start", "slot")
    return [(row.start, row.end, row.estimated_start, row.estimated_end) for row in rows]


def unused() -> list[tuple[datetime, datetime | None, int]]:
    """Return the intervals of what was reserved and used by no pod, without those of zero length."""
    rows = UsageInterval.objects.filter(unused=True).order_by("start", "recorded_at")
    return [(row.start, row.end, row.count) for row in rows if row.start != row.end]


def charged_gpus(seconds: float) -> int:
    """Return the GPUs charged at a moment."""
    rows = UsageInterval.objects.filter(start__lte=at(seconds))
    return sum(row.count for row in rows if row.end is None or row.end > at(seconds))
