"""Nodes whose labels contradict what they publish, and a hold on a GPU that no node publishes any more."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from allocations.domain.phases import Phase
from allocations.requests import services
from portal.tenants.models import Project, User
from quotas.catalog.models import Node, Offering
from tests.support.cluster.allocations import held, reason, wait_for
from tests.support.cluster.api_client import STRATEGIC_PATCH, ApiClient
from tests.support.cluster.hardware import Command, Switch
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
GPU = "nvidia.com/gpu"
POD_GC_S = 60
"""Kubernetes deletes pods of a node missing for 40 s, and looks every 20 s (pkg/controller/podgc)."""
SLICED = {"gpu.product": "NVIDIA-A10G", "gpu.count": "1", "gpu.replicas": "1", "gpu.sharing-strategy": "none"}
BOTH = {"gpu.product": "NVIDIA-L4", "gpu.count": "4", "gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"}


def node(name: str, labels: dict[str, str], amounts: dict[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a node and its status, whose condition has no time."""
    told = {"kubernetes.io/hostname": name, **{f"nvidia.com/{key}": value for key, value in labels.items()}}
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    there = {"cpu": "64", "memory": "512Gi", "pods": "250", **{key: str(amount) for key, amount in amounts.items()}}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "x"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": told}, "spec": {"taints": [taint]}}
    return body, {"status": {"capacity": there, "allocatable": there, "conditions": [ready]}}


@pytest.fixture
def odd(admin: ApiClient) -> Iterator[None]:
    """Create a node with 12 units where its label counts one GPU, and one with whole GPUs beside shares."""
    nodes = [node("odd-sliced", SLICED, {GPU: 12}), node("odd-both", BOTH, {GPU: 2, f"{GPU}.shared": 8})]
    for body, status in nodes:
        admin.created(body)
        path = f"/api/v1/nodes/{body['metadata']['name']}/status"
        assert admin.call("PATCH", path, status, content_type=STRATEGIC_PATCH).status == 200
    yield
    for body, _ in nodes:
        admin.delete("node", body["metadata"]["name"])
    eventually(lambda: not Node.objects.filter(name__startswith="odd-", present=True).exists())


def test_units_that_labels_contradict_are_told_and_not_offered_as_whole_gpus(odd: None) -> None:
    eventually(lambda: Node.objects.filter(name__startswith="odd-", present=True).exclude(problem="").count() == 2)
    sliced, both = Node.objects.get(name="odd-sliced"), Node.objects.get(name="odd-both")
    assert "it publishes 12 nvidia.com/gpu, but its label nvidia.com/gpu.count is 1" in sliced.problem
    assert sliced.flavor is None
    assert "nvidia.com/gpu beside nvidia.com/gpu.shared" in both.problem
    offered = Offering.objects.filter(flavor__product__in=["NVIDIA-A10G", "NVIDIA-L4"], flavor__nodes=both)
    assert set(offered.values_list("kind", "isolation", "pool__key")) == {
        ("shared", "none", f"{both.flavor}/gpu.shared")
    }


def test_a_hold_on_a_node_that_is_gone_does_not_say_that_its_gpus_are_ready(
    one_more: Switch, fleet: Command, project: Project, member: User
) -> None:
    name = one_more("a10-dra")["a10-dra"]
    eventually(lambda: Offering.objects.filter(key="a10/whole", pool__use__total__gt=0).exists())
    call_command("accept_flavors", "--all", "--share")
    row = held(member, project, "a10/whole")
    assert row.message == "Your GPUs are ready."
    fleet("--extra", "a10-dra=0")
    eventually(lambda: reason(row) == "device_not_published", within_s=60)
    assert f"of node {name} any more, so pods may not start on it." in row.message
    services.release(member, row)
    wait_for(row, Phase.ENDED, within_s=2 * POD_GC_S)
