"""Use of each node: pods whose CPU, memory and pods are within a share, and pods that use the shares of others."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.reconcile import node_usage
from quotas.catalog.blocked_capacity import BlockedCapacity
from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.node_shares import NodeShare
from tests.support.gpu_facts import divisible_gpu, dra_node, gpu, plugin_node, slices_of

GPU = "nvidia.com/gpu"
GIVES = NodeShare(64_000, 512 * 1024, 250)
L40S = discover([replace(plugin_node(), gives=GIVES)], [])
H100 = discover([replace(dra_node(), gives=GIVES)], [slices_of("h100-0", *(gpu(n) for n in range(4)))])


def pod(name: str, node: str, cpu: int, gpus: int = 0, **more: Any) -> ObservedObject:
    allocation = more.pop("allocation", "")
    facts = {"phase": "Running", "node": node, "gpus": {GPU: gpus} if gpus else {}, "cpu_millicores": cpu * 1000}
    return ObservedObject(
        Ref("Pod", "ns", name), name, 1, allocation=allocation, facts=facts | {"memory_mib": 1024} | more
    )


def claim(name: str, *devices: str, allocation: str = "", **more: Any) -> ObservedObject:
    given = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": device} for device in devices]
    return ObservedObject(
        Ref("ResourceClaim", "ns", name), name, 1, allocation=allocation, facts={"devices": given} | more
    )


def blocked_capacities(found: Discovered, *seen: ObservedObject, metered: tuple[str, ...] = ()) -> BlockedCapacity:
    shares = {flavor.name: flavor.per_gpu for flavor in found.flavors}
    flavors = dict.fromkeys(metered, found.flavors[0].name)
    (room,) = node_usage.blocked_capacities(Snapshot(seen), found, flavors, shares).values()
    return room


def blocked(found: Discovered, *seen: ObservedObject, metered: tuple[str, ...] = ()) -> int:
    return sum(blocked_capacities(found, *seen, metered=metered).blocked_units.values())


def test_a_foreign_pod_that_asks_for_half_the_node_blocks_half_of_its_gpus() -> None:
    assert blocked(L40S, pod("big", "l40s-0", 32)) == 2
    assert blocked(L40S, pod("big", "l40s-0", 32, phase="Succeeded")) == 0
    assert blocked(L40S, pod("big", "elsewhere", 32)) == 0


def test_pods_of_an_allocation_block_nothing_within_its_share() -> None:
    held = pod("train", "l40s-0", 15, gpus=1, allocation="train")
    assert blocked(L40S, held) == 0
    assert blocked(L40S, held, pod("more", "l40s-0", 15, allocation="train")) == 1


def test_a_pod_of_an_allocation_that_has_no_gpu_on_its_node_takes_from_the_shares_there() -> None:
    assert blocked(L40S, pod("helper", "l40s-0", 15, allocation="train")) == 1


def test_a_metered_pod_of_a_queued_job_has_the_share_of_its_gpus() -> None:
    job = pod("job", "l40s-0", 15, gpus=1)
    assert blocked(L40S, job, metered=("job",)) == 0
    assert blocked(L40S, job, pod("big", "l40s-0", 32), metered=("job",)) == 2


def test_a_claim_of_an_allocation_gives_its_pods_their_share() -> None:
    held = claim("train", "gpu-0", "gpu-1", allocation="train")
    assert blocked(H100, held, pod("train", "h100-0", 30, allocation="train")) == 0
    assert blocked(H100, held, pod("train", "h100-0", 40, allocation="train")) == 1


def test_a_claim_that_was_made_for_a_metered_pod_gives_it_its_share() -> None:
    seen = (claim("made", "gpu-0", pod="job"), pod("job", "h100-0", 15))
    assert blocked(H100, *seen, metered=("made",)) == 0
    assert blocked_capacities(H100, *seen).problem == ""  # the GPU that it has beside the portal needs no share
    assert blocked(H100, *seen, pod("more", "h100-0", 15)) == 1


def test_holders_have_the_pod_slot_of_their_slice_and_ask_of_the_systems_room() -> None:
    held = claim("train", "gpu-0", allocation="train")
    holder = pod("holder", "h100-0", 0, allocation="train", holder=True, cpu_millicores=1, memory_mib=8)
    share = H100.flavors[0].per_gpu.cpu_millicores
    whole_share = pod("train", "h100-0", 0, allocation="train", cpu_millicores=share)
    assert blocked(H100, held, holder, whole_share) == 0


def test_parts_of_gpus_that_are_cut_on_demand_have_a_part_of_the_share() -> None:
    found = discover([replace(dra_node(), gives=GIVES)], [slices_of("h100-0", *divisible_gpu(0))])
    held = claim("train", "gpu-0-mig-1g10gb-19-0", allocation="train")
    eighth = found.flavors[0].per_gpu.cpu_millicores // 8
    within = pod("train", "h100-0", 0, allocation="train", cpu_millicores=eighth)
    assert blocked_capacities(found, held, within) == BlockedCapacity()
    beyond = pod("train", "h100-0", 0, allocation="train", cpu_millicores=2 * eighth)
    assert blocked_capacities(found, held, beyond).blocked == Fraction(eighth, 8 * eighth)


def test_the_use_of_a_node_says_what_operators_read() -> None:
    (node,) = node_usage.of_nodes(
        Snapshot([pod("big", "l40s-0", 32, gpus=1)]), L40S, {}, {"l40s": L40S.flavors[0].per_gpu}
    ).values()
    assert (node.foreign, node.blocked_units) == ({"l40s/gpu": 1}, {"l40s/gpu": 1})
    assert "ask for 32 of 64 CPU here, so 2 of 4 GPUs have their share of CPU" in node.problem
