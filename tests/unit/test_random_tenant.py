"""The random tenant asks for CPU and memory, and a pod that has more than goes with its GPUs is found."""

from random import Random
from typing import Any

import pytest

from tests.cluster.random_tenant import invariants, manifests

NODE = {
    "metadata": {"name": "l40s-0"},
    "status": {"allocatable": {"cpu": "62", "memory": "504Gi", "nvidia.com/gpu": "4"}},
}


def pod(gpus: int, requests: dict[str, str], node: str = "l40s-0", phase: str = "Running") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    containers = [{"name": "main", "resources": {"requests": requests, "limits": limits}}]
    return {
        "metadata": {"name": "own"},
        "spec": {"nodeName": node, "containers": containers},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("gpus", "requests", "found"),
    [
        (1, {"cpu": "15500m", "memory": "126Gi"}, []),
        (1, {"cpu": "15501m"}, ["cpu"]),
        (1, {"memory": "127Gi", "cpu": "1"}, ["memory"]),
        (4, {"cpu": "62"}, []),
        (0, {"cpu": "1m", "memory": "1Mi"}, ["cpu", "memory"]),
    ],
)
def test_a_pod_that_asks_for_more_than_goes_with_its_gpus_is_found(
    gpus: int, requests: dict[str, str], found: list[str]
) -> None:
    sentences = list(invariants.beyond_shares([NODE], [pod(gpus, requests)]))
    assert [sentence.split(" of ")[-1].split(";")[0] for sentence in sentences] == found


def test_what_init_containers_ask_for_is_found() -> None:
    asking = pod(1, {})
    asking["spec"]["initContainers"] = [{"name": "first", "resources": {"requests": {"cpu": "20"}}}]
    [sentence] = invariants.beyond_shares([NODE], [asking])
    assert "asks for 20 of cpu" in sentence


@pytest.mark.parametrize("elsewhere", [pod(1, {"cpu": "60"}, node="cpu-0"), pod(1, {"cpu": "60"}, phase="Succeeded")])
def test_what_is_not_on_a_gpu_node_is_not_judged(elsewhere: dict[str, Any]) -> None:
    assert list(invariants.beyond_shares([NODE], [elsewhere])) == []


def test_some_pods_ask_for_more_than_a_gpus_part_and_some_for_less() -> None:
    asked = {
        made["spec"]["containers"][0].get("resources", {}).get("requests", {}).get("cpu")
        for made in (manifests.pod(Random(seed), "ns", "own", {}) for seed in range(200))
    }
    assert {None, "4", "40"} <= asked


def test_a_pod_that_another_jobs_controller_took_for_its_own_is_found() -> None:
    job = {"kind": "Job", "name": "train", "controller": True}
    made, taken, owned = ({**pod(0, {}), "metadata": {"name": name}} for name in ("train-x2k4p", "plain", "plain"))
    made["metadata"]["ownerReferences"] = taken["metadata"]["ownerReferences"] = [job]
    owned["metadata"]["ownerReferences"] = [{**job, "controller": False}]
    assert list(invariants.adopted([made, taken, owned])) == ["pod plain was adopted by Job train"]
