"""An administrator changes a node's MIG layout by its label, and the node's offerings follow."""

from typing import Any

import pytest

from tests.support.cluster.hardware import gpu_pod, running, unschedulable
from tests.support.cluster.mig_changes import versions
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

SEVENTHS = {"nvidia.com/mig-1g.10gb": "56"}


@pytest.fixture(scope="module")
def added(one_more) -> dict[str, str]:
    return one_more("a100", "a30-single")


@pytest.fixture
def a100(added) -> str:
    return added["a100"]


@pytest.fixture
def a30(added) -> str:
    return added["a30-single"]


def labels(read, node: str) -> dict[str, str]:
    found: dict[str, str] = read("node", node)["metadata"]["labels"]
    return found


def gpus(read, node: str, part: str = "allocatable") -> dict[str, str]:
    return gpus_of(read("node", node), part)


def gpus_of(node: dict[str, Any], part: str = "allocatable") -> dict[str, str]:
    return {name: count for name, count in node["status"][part].items() if name.startswith("nvidia.com/")}


def test_a_new_layout_is_pending_and_then_offered(a100, apply, cut, read, namespace):
    cut(a100, "all-balanced")
    assert cut(a100, "all-1g.10gb") == ["pending", "success"]
    eventually(lambda: {name: count for name, count in gpus(read, a100).items() if count != "0"} == SEVENTHS)
    assert gpus(read, a100) == gpus(read, a100, "capacity")
    assert gpus(read, a100)["nvidia.com/mig-3g.40gb"] == "0"
    found = labels(read, a100)
    assert found["nvidia.com/mig-1g.10gb.count"] == "56"
    assert "nvidia.com/mig-3g.40gb.count" not in found
    assert found["nvidia.com/gpu.deploy.device-plugin"] == "true"
    apply(gpu_pod("seven", "nvidia.com/mig-1g.10gb", 7, a100))
    eventually(lambda: running(read("pod", "seven", "-n", namespace)))


def test_nothing_is_offered_while_a_layout_is_pending(a100, cut, kubectl, read):
    cut(a100, "all-balanced")
    before = read("node", a100)["metadata"]["resourceVersion"]
    assert cut(a100, "large-and-small") == ["pending", "success"]
    eventually(lambda: gpus(read, a100).get("nvidia.com/mig-4g.40gb") == "8")
    plugin = "nvidia.com/gpu.deploy.device-plugin"
    paused = [
        version
        for version in versions(kubectl, a100, before)
        if version["metadata"]["labels"][plugin] == "paused-for-mig-change"
    ]
    assert set(gpus_of(paused[-1]).values()) == {"0"}


def test_cards_in_use_are_not_cut(a100, apply, cut, kubectl, read, namespace):
    cut(a100, "halves")
    eventually(lambda: gpus(read, a100).get("nvidia.com/mig-3g.40gb") == "16")
    before = gpus(read, a100)
    apply(gpu_pod("user", "nvidia.com/mig-3g.40gb", 1, a100))
    eventually(lambda: running(read("pod", "user", "-n", namespace)))
    assert cut(a100, "all-disabled") == ["pending", "failed"]
    eventually(lambda: gpus(read, a100) == before)
    assert running(read("pod", "user", "-n", namespace))
    kubectl("delete", "pod", "user", "-n", namespace)
    assert cut(a100, "halves") == ["success"]


def test_mig_off_offers_whole_cards(a100, cut, read):
    cut(a100, "all-balanced")
    assert cut(a100, "all-disabled") == ["pending", "success"]
    eventually(lambda: gpus(read, a100).get("nvidia.com/gpu") == "8")
    found = labels(read, a100)
    assert (found["nvidia.com/gpu.product"], found["nvidia.com/gpu.replicas"]) == ("NVIDIA-A100-SXM4-80GB", "1")
    assert not [key for key in found if key.startswith("nvidia.com/mig-")]


def test_a_layout_nobody_knows_fails_and_changes_nothing(a100, cut, read):
    cut(a100, "all-balanced")
    eventually(lambda: gpus(read, a100).get("nvidia.com/mig-3g.40gb") == "8")
    before = gpus(read, a100)
    assert cut(a100, "all-5g.60gb") == ["failed"]
    assert gpus(read, a100) == before


def test_an_impossible_layout_fails_and_costs_a_card(a100, cut, read):
    cut(a100, "all-balanced")
    assert cut(a100, "two-large") == ["pending", "failed"]
    eventually(lambda: gpus(read, a100).get("nvidia.com/mig-3g.40gb") == "7")
    assert cut(a100, "all-balanced") == ["pending", "success"]
    eventually(lambda: gpus(read, a100).get("nvidia.com/mig-3g.40gb") == "8")


def test_by_strategy_single_a_mixed_layout_is_invalid_until_it_is_put_right(a30, apply, cut, read, namespace):
    assert cut(a30, "all-balanced") == ["pending", "success"]
    eventually(lambda: gpus(read, a30) == {"nvidia.com/gpu": "0"})
    found = labels(read, a30)
    assert found["nvidia.com/gpu.product"] == "NVIDIA-A30-MIG-INVALID"
    assert (found["nvidia.com/gpu.count"], found["nvidia.com/gpu.replicas"]) == ("0", "0")
    apply(gpu_pod("waits", "nvidia.com/gpu", 1, a30))
    eventually(lambda: unschedulable(read("pod", "waits", "-n", namespace)))
    assert cut(a30, "all-2g.12gb") == ["pending", "success"]
    eventually(lambda: gpus(read, a30) == {"nvidia.com/gpu": "8"})
    assert labels(read, a30)["nvidia.com/gpu.product"] == "NVIDIA-A30-MIG-2g.12gb"
    eventually(lambda: running(read("pod", "waits", "-n", namespace)))
