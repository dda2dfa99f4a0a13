"""Pods outside the portal that request the CPU of GPUs: those GPUs are not offered as free until the pods are
gone.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import QuerySet

from allocations.capacity import flavor_devices
from allocations.capacity.snapshot import CapacitySnapshot
from quotas.catalog.models import Node, Offering
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.hardware import Apply
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
BIG = "asks-for-all-cpu"


@pytest.mark.parametrize(("offering", "node"), [("h100/whole", "h100-0"), ("l40s/whole", "l40s-0")])
def test_gpus_whose_share_of_cpu_others_ask_for_are_not_free_until_they_go(
    offering: str, node: str, admin: ApiClient, apply: Apply, namespace: str
) -> None:
    """A pod that tolerates the node's taint requests all but four CPU: less than one GPU's share is left. Memory, pod
    slots and all of the node's GPUs are free.
    """
    eventually(lambda: set(present().values_list("name", flat=True)) == gpu_nodes(admin))
    gpus = gpus_by_node(offering)
    eventually(lambda: free(offering) == gpus.total())
    apply(pod(node, cpu=cpu_left(admin, node) - 4))
    eventually(lambda: free(offering) == gpus.total() - gpus[node])
    row = Node.objects.get(name=node)
    assert row.flavor_id is not None
    assert "pods that are not the portal's ask for" in row.problem
    assert f"so 0 of {row.capacity[next(iter(row.capacity))]} GPUs have their share of CPU" in row.problem
    assert f"spec.nodeName={node}" in row.problem
    admin.delete("pod", BIG, namespace)
    eventually(lambda: free(offering) == gpus.total())
    eventually(lambda: Node.objects.get(name=node).problem == "")


@pytest.fixture(autouse=True)
def unblocked() -> Iterator[None]:
    """Wait at the end until no node is blocked."""
    yield
    eventually(lambda: not Node.objects.filter(blocked_gpus__gt=0).exists())


def free(key: str) -> int:
    return CapacitySnapshot().capacity(Offering.objects.select_related("flavor", "pool__use").get(key=key)).free


def gpus_by_node(key: str) -> Counter[str]:
    """Return how many GPUs each node has for the offering, whoever uses them."""
    flavor = Offering.objects.select_related("flavor").get(key=key).flavor
    if flavor.path == "dra":
        return Counter(gpu.node for gpu in flavor_devices.of_flavors([flavor])[flavor.pk].gpus)
    return Counter({node.name: int(node.capacity["gpu"]) for node in present().filter(flavor=flavor)})


def present() -> QuerySet[Node]:
    return Node.objects.filter(present=True)


def gpu_nodes(admin: ApiClient) -> set[str]:
    return {node["metadata"]["name"] for node in admin.objects("nodes", labels="nvidia.com/gpu.present=true")}


def cpu_left(admin: ApiClient, node: str) -> int:
    """Return the whole CPUs of a node that no pod has requested."""
    allocatable = admin.get("node", node)["status"]["allocatable"]["cpu"]
    pods = admin.objects("pods", fields=f"spec.nodeName={node}")
    requested = sum(
        millicores(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        for one in pods
        for container in one["spec"]["containers"]
    )
    return (millicores(allocatable) - requested) // 1000


def millicores(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def pod(node: str, cpu: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": BIG},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": str(cpu), "memory": "64Mi"}},
                }
            ],
        },
    }
