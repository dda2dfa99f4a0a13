"""Use by pods and claims without an allocation: GPUs only, each once, and only of current offerings."""

from dataclasses import replace
from typing import Any

import pytest

from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.reconcile.node_usage import foreign_use
from quotas.catalog.discovery import discover
from tests.support.gpu_facts import divisible_gpu, dra_node, gpu, plugin_node, slices_of

GPU = "nvidia.com/gpu"


def pod(node: str, gpus: int = 1) -> ObservedObject:
    facts = {"phase": "Running", "node": node, "gpus": {GPU: gpus}}
    return ObservedObject(Ref("Pod", "elsewhere", f"pod-{node}"), f"pod-{node}", 1, facts=facts)


def claim(node: str, device: str, driver: str = "gpu.nvidia.com", **more: Any) -> ObservedObject:
    facts = {"devices": [{"request": "r", "driver": driver, "pool": node, "device": device, **more}]}
    return ObservedObject(Ref("ResourceClaim", "elsewhere", f"claim-{device}"), f"claim-{device}", 1, facts=facts)


PLAIN = discover([dra_node()], [slices_of("h100-0", gpu(0), gpu(1))])
DIVISIBLE = discover([dra_node()], [slices_of("h100-0", *divisible_gpu(0), *divisible_gpu(1))])


def test_a_claim_uses_the_device_it_was_given() -> None:
    assert foreign_use(Snapshot([claim("h100-0", "gpu-0")]), PLAIN, {}) == {"h100-0": {"h100/gpu": 1}}


def test_a_part_uses_its_whole_gpu_once() -> None:
    parts = [claim("h100-0", f"gpu-0-mig-1g10gb-19-{place}") for place in range(2)]
    assert foreign_use(Snapshot(parts), DIVISIBLE, {}) == {"h100-0": {"h100/slices": 1}}


@pytest.mark.parametrize("found", [PLAIN, DIVISIBLE], ids=["plain", "divisible"])
def test_devices_of_other_drivers_are_no_gpus(found: Any) -> None:
    assert foreign_use(Snapshot([claim("h100-0", "channel-0", "compute-domain.nvidia.com")]), found, {}) == {}


def test_a_gpu_that_a_pod_asked_as_a_resource_and_got_by_a_claim_is_one() -> None:
    """Kubernetes creates the claim of a DeviceClass with an extendedResourceName."""
    assert foreign_use(Snapshot([pod("h100-0"), claim("h100-0", "gpu-0")]), PLAIN, {}) == {"h100-0": {"h100/gpu": 1}}


def test_what_the_ledger_has_of_a_claim_is_no_foreign_use() -> None:
    view = Snapshot([claim("h100-0", "gpu-0"), claim("h100-0", "gpu-1")])
    assert foreign_use(view, PLAIN, {"claim-gpu-0": "h100"}) == {"h100-0": {"h100/gpu": 1}}


def test_what_runs_where_nothing_is_offered_now_takes_nothing_from_what_is() -> None:
    nodes = [plugin_node("l40s-0"), replace(plugin_node("l40s-1"), unschedulable=True)]
    found = discover(nodes, [])
    assert found.pools[0].total == 4
    assert foreign_use(Snapshot([pod("l40s-0", 1), pod("l40s-1", 4)]), found, {}) == {"l40s-0": {"l40s/gpu": 1}}


def test_a_sick_device_that_somebody_has_takes_nothing_from_the_healthy_ones() -> None:
    sick = gpu(1, taints=(("gpu.nvidia.com/xid", "79", "NoSchedule"),))
    found = discover([dra_node()], [slices_of("h100-0", gpu(0), sick)])
    assert found.pools[0].total == 1
    assert foreign_use(Snapshot([claim("h100-0", "gpu-1")]), found, {}) == {}


@pytest.mark.parametrize(("flavor", "foreign"), [("h100", {}), ("a100", {"h100-0": {"h100/gpu": 2}})])
def test_what_is_held_of_another_flavor_is_foreign_in_the_pool_that_it_is_in_now(flavor: str, foreign: Any) -> None:
    view = Snapshot([replace(claim("h100-0", "gpu-0"), allocation="train"), claim("h100-0", "gpu-1")])
    flavors = dict.fromkeys(("elsewhere/train", "claim-gpu-1"), flavor)
    assert foreign_use(view, PLAIN, flavors) == foreign
