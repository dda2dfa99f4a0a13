"""The ledgers of capacity and foreign use after random events and lists: complete, and without overlaps."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_list, record_observations
from quotas.metering.models import CapacityInterval, ForeignUse
from tests.support.clusters import LOCAL
from tests.support.observed import at, seen

pytestmark = pytest.mark.django_db
FOREVER = datetime.max.replace(tzinfo=UTC)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
Body = dict[str, Any]
Key = tuple[str, str]


class Cluster:
    """A cluster whose nodes, ResourceSlices, pods and claims change at random; a watcher misses some of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.objects: dict[Key, Body] = {}
        self.revision, self.second = 0, 0.0
        self.make = {"Node": self._node, "ResourceSlice": self._slice, "Pod": self._pod, "ResourceClaim": self._claim}

    def step(self) -> None:
        self.second += self.random.choice([0, 0, 1, 5])
        kind = self.random.choice(list(self.make))
        batch = []
        for _ in range(self.random.choice([1, 1, 1, 4])):
            body, gone = self._change(kind)
            if self.random.random() < 0.7:
                live = self.random.random() < 0.8
                batch.append(seen(body, self.second - (0 if live else 3), live=live, gone=gone))
        record_observations(LOCAL, batch)
        if self.random.random() < 0.2:
            self.list(kind)
        if self.random.random() < 0.1:
            reconcile_inventory(LOCAL)

    def list(self, kind: str) -> None:
        self.revision += 1
        bodies = [body for (of, _), body in self.objects.items() if of == kind]
        found = [seen(body, self.second, live=False) for body in bodies]
        record_list(LOCAL, KINDS[kind], found, self.revision, at(self.second))

    def _change(self, kind: str) -> tuple[Body, bool]:
        self.revision += 1
        name = f"{kind.lower()}-{self.random.randrange(3)}"
        before = self.objects.get((kind, name))
        if before is not None and self.random.random() < 0.3:
            del self.objects[kind, name]
            return {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.revision)}}, True
        is_new = before is None or self.random.random() < 0.1
        uid = f"{name}-{self.revision}" if is_new or before is None else before["metadata"]["uid"]
        metadata = {"name": name, "uid": uid, "resourceVersion": str(self.revision)}
        body = self.make[kind](metadata)
        self.objects[kind, name] = body
        return body, False

    def _node(self, metadata: Body) -> Body:
        amount = self.random.choice([{}, {"nvidia.com/gpu": 0}, {"nvidia.com/gpu": 4}, {"nvidia.com/mig-1g.10gb": 7}])
        ready = {"type": "Ready", "status": self.random.choice(["True", "False"])}
        return {
            "kind": "Node",
            "metadata": {**metadata, "labels": LABELS},
            "spec": {"taints": self.random.choice([[], [TAINT]]), "unschedulable": self.random.random() < 0.2},
            "status": {"capacity": amount, "allocatable": self.random.choice([amount, {}]), "conditions": [ready]},
        }

    def _slice(self, metadata: Body) -> Body:
        node = f"node-{self.random.randrange(3)}"
        pool = {
            "name": node,
            "generation": self.random.randrange(3),
            "resourceSliceCount": self.random.choice([1, 1, 2]),
        }
        devices = [
            {
                "name": f"gpu-{number}",
                "attributes": {
                    "type": {"string": "gpu"},
                    "uuid": {"string": f"GPU-{self.random.randrange(4)}"},
                    "productName": {"string": "NVIDIA H100 80GB HBM3"},
                },
            }
            for number in range(self.random.randrange(4))
        ]
        return {
            "kind": "ResourceSlice",
            "metadata": metadata,
            "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": devices},
        }

    def _pod(self, metadata: Body) -> Body:
        container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(self.random.randrange(1, 3))}}}
        return {
            "kind": "Pod",
            "metadata": {**metadata, "namespace": "elsewhere"},
            "spec": {"nodeName": self.random.choice(["", "node-0", "node-1"]), "containers": [container]},
            "status": {"phase": self.random.choice(["Pending", "Running", "Succeeded"])},
        }

    def _claim(self, metadata: Body) -> Body:
        names = self.random.sample(["gpu-0", "gpu-1", "gpu-0-mig-1g10gb-19-0"], self.random.randrange(3))
        results = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "node-0", "device": name} for name in names]
        return {
            "kind": "ResourceClaim",
            "metadata": {**metadata, "namespace": "elsewhere"},
            "status": {"allocation": {"devices": {"results": results}}} if results else {},
        }


def overlapping(intervals: Mapping[Any, Sequence[tuple[datetime, datetime | None]]]) -> list[Any]:
    """Return the keys of which an interval begins before an earlier one has ended."""
    ordered = {key: sorted((start, end or FOREVER) for start, end in spans) for key, spans in intervals.items()}
    return [key for key, spans in ordered.items() if any(a[1] > b[0] for a, b in pairwise(spans))]


@pytest.mark.parametrize("seed", range(4))
def test_intervals_never_overlap_and_those_that_are_open_are_what_the_cluster_has(seed: int):
    cluster = Cluster(seed)
    for _ in range(60):
        cluster.step()
    for kind in cluster.make:
        cluster.list(kind)
    units, uses = defaultdict(list), defaultdict(list)
    for row in CapacityInterval.objects.all():
        units[row.unit].append((row.start, row.end))
    for use in ForeignUse.objects.all():
        uses[use.uid, use.slot].append((use.start, use.end))
    assert overlapping(units) == overlapping(uses) == []
    nodes = {name for kind, name in cluster.objects if kind == "Node"}
    open_uses = {key for key, spans in uses.items() if any(end is None for _, end in spans)}
    assert {unit.node for unit, spans in units.items() if any(end is None for _, end in spans)} <= nodes
    assert open_uses == used(cluster)


def used(cluster: Cluster) -> set[tuple[str, str]]:
    """Return the uid and slot of what the pods and claims of the cluster use now."""
    found = set()
    for (kind, _), body in cluster.objects.items():
        uid = body["metadata"]["uid"]
        if kind == "ResourceClaim":
            results = body["status"].get("allocation", {}).get("devices", {}).get("results", ())
            found |= {(uid, f"{LOCAL}/{one['pool']}/{one['device']}") for one in results}
        elif kind == "Pod" and body["spec"]["nodeName"] and body["status"]["phase"] != "Succeeded":
            amounts = body["spec"]["containers"][0]["resources"]["limits"]
            found |= {(uid, f"{LOCAL}/pod:{uid}/{name}") for name in amounts}
    return found
