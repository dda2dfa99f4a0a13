"""Every layout of a GPU: requested largest first, it is admitted by Kueue and placed by the scheduler.

The portal takes no part: plain Workloads, each in a queue of one GPU, and plain claims, one GPU each.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

import pytest

from quotas.catalog import layouts
from quotas.catalog.mig_tables import TABLES
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.one_gpu import SELECT, Manifest, allocated, claimed, listed
from tests.support.cluster.waiting import eventually
from tests.support.mig_layouts import is_valid, maximal_layouts

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
TOO_LARGE = ({"7g.80gb": 1}, {"4g.40gb": 1, "3g.40gb": 1}, {"3g.40gb": 2}, {"2g.20gb": 3, "1g.10gb": 1})


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
    kubectl("delete", "workloads.kueue.x-k8s.io,resourceclaims,localqueues", "--all", "-n", name, "--timeout=50s")
    kubectl("delete", "clusterqueues", "-l", f"layouts={name}", "--wait=false")
    kubectl("delete", "namespace", name, "--wait=false")


def test_kueue_admits_every_layout_of_a_gpu(kubectl: Kubectl, namespace: str) -> None:
    """Maximal layouts: every other layout is a part of one of them."""
    wanted = {f"layout-{n}": largest_first(layout) for n, layout in enumerate(maximal_layouts(H100))}
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
