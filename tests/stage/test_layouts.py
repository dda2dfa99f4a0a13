"""Every layout of a GPU: requested largest first, it is admitted by Kueue and placed by the scheduler.

The portal takes no part: plain Workloads, each in a queue of one GPU, and plain claims, one GPU each.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from allocations.cluster.gpu_selector import of_gpu
from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import TABLES
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.mig_layouts import is_valid

pytestmark = pytest.mark.cluster
H100 = TABLES["H100-80GB"]
UNITS = {"gpu-portal.io/compute-slices": "compute", "gpu-portal.io/memory-slices": "size"}
GPU = {"gpu-portal.io/compute-slices": H100.compute, "gpu-portal.io/memory-slices": H100.memory}
EVERY = tuple(layouts.layouts(H100))
FULL = tuple(
    layout
    for layout in EVERY
    if any(sum(getattr(H100.profile(p), of) * n for p, n in layout.items()) == GPU[u] for u, of in UNITS.items())
)
AT_ONCE = 16
"""GPUs of this model in the simulated fleet."""
SELECT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
TOO_LARGE = ({"7g.80gb": 1}, {"4g.40gb": 1, "3g.40gb": 1}, {"3g.40gb": 2}, {"2g.20gb": 3, "1g.10gb": 1})
Manifest = dict[str, Any]


def largest_first(layout: Mapping[str, int]) -> list[str]:
    by_size = sorted(layout, key=lambda name: (-H100.profile(name).size, -H100.profile(name).compute, name))
    return [name for name in by_size for _ in range(layout[name])]


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """Create a namespace without the portal; its name is the label of everything created for one test."""
    name = f"layouts-{uuid4().hex[:6]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "pods", "--all", "-n", name, "--force", "--ignore-not-found")
    kubectl("delete", "workloads,resourceclaims,localqueues", "--all", "-n", name, "--timeout=50s")
    kubectl("delete", "clusterqueues", "-l", f"layouts={name}", "--wait=false")
    kubectl("delete", "namespace", name, "--wait=false")


def test_kueue_admits_every_layout_of_a_gpu(kubectl: Kubectl, namespace: str) -> None:
    """Maximal layouts: every other layout is a part of one of them."""
    wanted = {f"layout-{n}": largest_first(layout) for n, layout in enumerate(layouts.maximal_layouts(H100))}
    manifests = [
        part
        for name, profiles in wanted.items()
        for part in (*queue_of_one_gpu(namespace, name), workload(namespace, name, profiles))
    ]
    kubectl("create", "-f", "-", stdin=json.dumps(listed(manifests)))
    eventually(lambda: quota_reserved(kubectl, namespace) == dict.fromkeys(wanted, "True"), within_s=60)


def test_kueue_admits_none_with_a_slice_more(kubectl: Kubectl, namespace: str) -> None:
    wanted = {f"more-{n}": [*largest_first(layout), "1g.10gb"] for n, layout in enumerate(FULL)}
    manifests = [
        *queue_of_one_gpu(namespace, "card"),
        *(workload(namespace, *item, queue="card") for item in wanted.items()),
    ]
    kubectl("create", "-f", "-", stdin=json.dumps(listed(manifests)))
    eventually(lambda: quota_reserved(kubectl, namespace) == dict.fromkeys(wanted, "False"), within_s=60)


def quota_reserved(kubectl: Kubectl, namespace: str) -> dict[str, str | None]:
    """Return Kueue's QuotaReserved status of each workload; None if it has none yet."""
    rows = json.loads(kubectl("get", "workloads.kueue.x-k8s.io", "-n", namespace, "-o", "json"))["items"]
    conditions = {row["metadata"]["name"]: row.get("status", {}).get("conditions", ()) for row in rows}
    return {
        name: next((c["status"] for c in found if c["type"] == "QuotaReserved"), None)
        for name, found in conditions.items()
    }


def test_the_scheduler_places_every_layout_on_one_gpu(kubectl: Kubectl, namespace: str) -> None:
    for first in range(0, len(EVERY), AT_ONCE):
        some = {f"layout-{n}": layout for n, layout in enumerate(EVERY[first : first + AT_ONCE], first)}
        manifests = [part for name, layout in some.items() for part in claimed(namespace, name, largest_first(layout))]
        kubectl("create", "-f", "-", stdin=json.dumps(listed(manifests)))
        results = allocated(kubectl, namespace, set(some))
        for name, layout in some.items():
            on = {(r["pool"], r["device"].partition("-mig-")[0]) for r in results[name]}
            placed = [layouts.placement_of_device(H100, r["device"])[1] for r in results[name]]
            assert len(on) == 1
            assert Counter(one.profile for one in placed if one) == Counter(layout)
            assert is_valid(H100, [one for one in placed if one])
        kubectl("delete", "pods", "--all", "-n", namespace, "--force")
        kubectl("delete", "resourceclaims", "--all", "-n", namespace, "--timeout=30s")


def test_the_scheduler_places_none_with_a_slice_more(kubectl: Kubectl, namespace: str) -> None:
    names = {f"more-{n}": layout for n, layout in enumerate(TOO_LARGE)}
    manifests = [
        p for name, layout in names.items() for p in claimed(namespace, name, [*largest_first(layout), "1g.10gb"])
    ]
    kubectl("create", "-f", "-", stdin=json.dumps(listed(manifests)))

    def reasons() -> set[str]:
        pods = json.loads(kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
        of = [c for pod in pods for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        return {c.get("reason", "") for c in of} if len(of) == len(names) else set()

    eventually(lambda: reasons() == {"Unschedulable"}, within_s=60)


def test_the_scheduler_takes_the_place_that_is_predicted_whatever_stands_there(
    kubectl: Kubectl, namespace: str
) -> None:
    """``layouts.first_fit``, on which the portal's choice of GPUs is based: one GPU, filled and emptied."""
    dice = random.Random(20261121)
    gpu = uuid_of(kubectl, "h100-0", "gpu-0")
    placements: dict[str, Placement] = {}
    placed = 0
    for step in range(40):
        if placements and dice.random() < 0.4:
            name_to_delete = dice.choice(sorted(placements))
            kubectl("delete", "pod", name_to_delete, "-n", namespace, "--force")
            kubectl("delete", "resourceclaim", name_to_delete, "-n", namespace, "--timeout=30s")
            del placements[name_to_delete]
            continue
        profile = dice.choice([one.name for one in H100.profiles])
        predicted = layouts.first_fit(H100, frozenset(placements.values()), profile)
        if predicted is None:
            continue
        name = f"step-{step}"
        kubectl("create", "-f", "-", stdin=json.dumps(listed(claimed(namespace, name, [profile], gpu))))
        (result,) = allocated(kubectl, namespace, {*placements, name})[name]
        assert layouts.placement_of_device(H100, result["device"]) == ("gpu-0", predicted), placements
        placements[name] = predicted
        placed += 1
    assert placed > 10


def uuid_of(kubectl: Kubectl, node: str, gpu: str) -> str:
    found = json.loads(kubectl("get", "resourceslices", "-o", "json"))["items"]
    devices = [d for one in found if one["spec"].get("nodeName") == node for d in one["spec"].get("devices", ())]
    uuids = [str(d["attributes"]["uuid"]["string"]) for d in devices if d["name"] == gpu]
    return uuids[0]


def allocated(kubectl: Kubectl, namespace: str, names: set[str]) -> dict[str, list[dict[str, str]]]:
    """Return the device allocated to each claim, once all of them have one."""

    def results_if_complete() -> dict[str, list[dict[str, str]]]:
        rows = json.loads(kubectl("get", "resourceclaims", "-n", namespace, "-o", "json"))["items"]
        of = {row["metadata"]["name"]: row.get("status", {}).get("allocation", {}) for row in rows}
        results = {name: found.get("devices", {}).get("results", []) for name, found in of.items()}
        return results if set(results) == names and all(results.values()) else {}

    return eventually(results_if_complete, within_s=60)


def listed(items: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def queue_of_one_gpu(namespace: str, name: str) -> list[Manifest]:
    kueue = "kueue.x-k8s.io/v1beta2"
    quota = [{"name": resource, "nominalQuota": str(amount)} for resource, amount in GPU.items()]
    group = {"coveredResources": list(GPU), "flavors": [{"name": "h100", "resources": quota}]}
    return [
        {
            "apiVersion": kueue,
            "kind": "ClusterQueue",
            "metadata": {"name": f"{namespace}-{name}", "labels": {"layouts": namespace}},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        {
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": f"{namespace}-{name}"},
        },
    ]


def workload(namespace: str, name: str, profiles: Sequence[str], queue: str = "") -> Manifest:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "queueName": queue or name,
            "priority": 0,
            "podSets": [pod_set(profile, count) for profile, count in Counter(profiles).items()],
        },
    }


def pod_set(profile: str, count: int) -> Manifest:
    amounts = {resource: str(getattr(H100.profile(profile), of)) for resource, of in UNITS.items()}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "slice", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    spec = {"restartPolicy": "Never", "nodeSelector": SELECT, "tolerations": [{"operator": "Exists"}]}
    name = "p-" + profile.replace(".", "-").replace("+", "-")
    return {"name": name, "count": count, "template": {"spec": {**spec, "containers": [container]}}}


def claimed(namespace: str, name: str, profiles: Sequence[str], gpu: str = "") -> list[Manifest]:
    """Return a claim of all the slices on one GPU, by UUID or any GPU, and a pod that uses it."""
    steered = [{"cel": {"expression": of_gpu(gpu)}}] if gpu else []
    requests = [
        {
            "name": f"slice-{n}",
            "exactly": {
                "deviceClassName": "mig.nvidia.com",
                "selectors": [
                    {"cel": {"expression": f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'}},
                    *steered,
                ],
            },
        }
        for n, profile in enumerate(profiles)
    ]
    devices = {"requests": requests, "constraints": [{"matchAttribute": "gpu.nvidia.com/parentUUID"}]}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"claims": [{"name": "gpu"}]}}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": devices},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "nodeSelector": SELECT,
                "tolerations": [{"operator": "Exists"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                "containers": [container],
            },
        },
    ]
