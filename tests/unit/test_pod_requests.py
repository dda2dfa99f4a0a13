"""The stored CPU and memory requests of pods, and which pods without GPUs are stored."""

from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.cluster.projectors.pod_requests import node_requests

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ANY_TAINT = {"operator": "Exists"}
OTHER_TAINT = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}


def container(cpu: str, memory: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def pod(*tolerations: dict[str, Any], node: str = "h100-0", **more: Any) -> Any:
    spec = {"nodeName": node, "containers": [container("250m", "64Mi")], "tolerations": list(tolerations), **more}
    return KINDS["Pod"].projector({"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Running"}})


def test_a_pod_asks_what_its_containers_take_at_the_most_at_once() -> None:
    spec = {
        "initContainers": [container("100m", "1Gi", restartPolicy="Always"), container("3", "1Gi")],
        "containers": [container("1", "2Gi"), container("500m", "1k")],
    }
    assert node_requests(spec) == {"cpu_millicores": 3100, "memory_mib": 3073}


def test_what_is_set_for_the_pod_as_a_whole_stands_for_its_containers() -> None:
    spec = {"containers": [container("1", "2Gi")], "resources": {"requests": {"cpu": "6"}}}
    assert node_requests(spec) == {"cpu_millicores": 6000, "memory_mib": 2048}


def test_the_overhead_of_its_runtime_comes_on_top() -> None:
    spec = {"containers": [container("1", "2Gi")], "overhead": {"cpu": "250m", "memory": "120Mi"}}
    assert node_requests(spec) == {"cpu_millicores": 1250, "memory_mib": 2168}


def test_a_pod_that_asks_for_nothing_asks_for_nothing() -> None:
    assert node_requests({"containers": [{"name": "c"}]}) == {"cpu_millicores": 0, "memory_mib": 0}


@pytest.mark.parametrize("toleration", [GPU_TAINT, ANY_TAINT])
def test_of_a_pod_that_may_run_on_gpu_nodes_only_what_it_takes_is_remembered(toleration: dict[str, Any]) -> None:
    takes = {"phase": "Running", "node": "h100-0", "gpus": {}, "cpu_millicores": 250, "memory_mib": 64}
    assert pod(OTHER_TAINT, toleration) == takes


def test_other_pods_without_gpus_concern_nobody_here() -> None:
    assert pod(OTHER_TAINT) is None
    assert pod(GPU_TAINT, node="") is None


def test_the_pod_that_keeps_a_slice_is_known_as_such() -> None:
    raw = {"metadata": {"name": "p", "labels": {names.ALLOCATION: "train", names.HOLDER: "true"}}, "spec": {}}
    found = KINDS["Pod"].projector(raw)
    assert found is not None
    assert found["holder"] is True
