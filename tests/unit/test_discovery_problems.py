"""Discovery of nodes and devices that are not offered, or not counted, each with its problem."""

from dataclasses import replace
from fractions import Fraction

import pytest

from quotas.catalog.discovery import DeviceFact, Discovered, discover
from quotas.catalog.types import FoundNode, FoundOffering
from tests.support.gpu_facts import divisible_gpu, dra_node, gpu, plugin_node, problems, slices_of

UNSHARED = {"nvidia.com/device-plugin.config": "unshared", "nvidia.com/gpu.deploy.device-plugin": "true"}
BY_DRA = {"nvidia.com/gpu.deploy.device-plugin": "false"}
WHOLE = {"nvidia.com/gpu": Fraction(1)}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def slices_in(found: Discovered) -> list[FoundOffering]:
    """Return the offerings except custom claims, which every flavor by DRA has."""
    return [offering for offering in found.offerings if offering.kind != "claim"]


def test_shares_of_an_unknown_number_are_a_problem_and_not_offered():
    found = discover([plugin_node(amounts={"nvidia.com/gpu.shared": 16})], [])
    assert found.offerings == ()
    assert found.nodes[0].flavor == ""
    assert "nvidia.com/gpu.replicas" in problems(found)[0][1]


def test_an_untainted_node_is_a_problem_and_not_offered():
    bare = replace(
        plugin_node(), taints=(("nvidia.com/gpu", "present", "PreferNoSchedule"), ("other", "", "NoSchedule"))
    )
    found = discover([bare], [])
    assert (found.flavors, found.pools, found.offerings) == ((), (), ())
    (node,) = found.nodes
    assert node == FoundNode("l40s-0", "", True, False, node.problem, {"gpu": 4}, {"gpu": 4}, gpus_per_unit=WHOLE)
    assert "kubectl taint nodes l40s-0 nvidia.com/gpu=present:NoSchedule" in problems(found)[0][1]


def test_a_node_without_a_product_label_is_a_problem_and_not_offered():
    found = discover([replace(plugin_node(), labels={})], [])
    assert found.offerings == ()
    assert "nvidia.com/gpu.product" in problems(found)[0][1]


def test_both_paths_on_a_node_are_a_problem_and_offered_once():
    node = plugin_node("h100-0", "NVIDIA-H100-80GB-HBM3", {"nvidia.com/gpu": 1}, "81559")
    found = discover([node], [slices_of("h100-0", gpu(0))])
    assert [(offering.key, offering.device_class) for offering in slices_in(found)] == [
        ("h100/whole", "gpu.nvidia.com")
    ]
    assert [pool.total for pool in found.pools] == [1]
    assert "both" in problems(found)[0][1]


def test_what_is_not_ready_cordoned_or_unhealthy_is_not_in_the_total_but_stays_offered():
    nodes = [plugin_node(f"l40s-{n}") for n in range(3)]
    nodes[1] = replace(nodes[1], ready=False)
    nodes[2] = replace(nodes[2], unschedulable=True)
    found = discover(nodes, [])
    assert [pool.total for pool in found.pools] == [4]
    assert [node.ready for node in found.nodes] == [True, False, False]
    assert {node.flavor for node in found.nodes} == {"l40s"}

    sick = replace(nodes[0], allocatable={"nvidia.com/gpu": 3})
    found = discover([sick], [])
    assert (found.pools[0].total, slices_in(found)[0].per_node) == (3, 4)


def test_a_tainted_device_is_unhealthy_and_not_in_the_total():
    sick = gpu(1, taints=(("gpu.nvidia.com/xid", "79", "NoExecute"),))
    noted = gpu(2, taints=(("gpu-portal.io/unhealthy", "", "None"),))
    found = discover([dra_node()], [slices_of("h100-0", gpu(0), sick, noted)])
    assert [device.healthy for device in found.devices] == [True, False, True]
    assert (found.pools[0].total, slices_in(found)[0].per_node) == (2, 3)


def test_only_the_newest_complete_generation_counts():
    old = slices_of("h100-0", gpu(0), gpu(1), generation=1)
    new = slices_of("h100-0", gpu(0), generation=2)
    assert discover([dra_node()], [old, new]).pools[0].total == 1

    partial = replace(new, slice_count=2)
    found = discover([dra_node()], [old, partial])
    assert (found.pools, found.devices) == ((), ())
    assert "1 of 2 ResourceSlices of generation 2" in problems(found)[0][1]


def test_slices_of_other_drivers_are_ignored():
    other = replace(slices_of("h100-0", gpu(0)), driver="other.example.com")
    found = discover([dra_node()], [other])
    assert found.offerings == ()
    assert "neither the device plugin nor the DRA driver publishes any" in problems(found)[0][1]


@pytest.mark.parametrize(
    "odd",
    [
        DeviceFact("gpu-1-mig-x", {"type": "mig", "productName": "NVIDIA H100 80GB HBM3"}, {"memory": "9984Mi"}),
        replace(gpu(1), capacity={"memory": "much"}),
        replace(gpu(1), capacity={"memory": "81559Mi", "shares": "few"}, shareable=True),
        replace(divisible_gpu(1)[1], name="part"),
    ],
    ids=["no profile", "memory", "shares", "name"],
)
def test_devices_in_a_form_that_nobody_knows_keep_their_own_node_from_being_offered_and_no_other(odd):
    strange = [slices_of("h100-0", odd)]
    found = discover([dra_node(), dra_node("h100-1")], [*strange, slices_of("h100-1", gpu(0))])
    assert [(node.name, node.flavor) for node in found.nodes] == [("h100-0", ""), ("h100-1", "h100")]
    assert "not as NVIDIA's DRA driver publishes them" in dict(problems(found))["h100-0"]


def test_a_profile_in_the_product_label_of_a_node_by_dra_is_said():
    part = DeviceFact(
        "gpu-0-mig-1g10gb-19-0",
        {"type": "mig", "profile": "1g.10gb", "parentUUID": "GPU-0", "productName": "NVIDIA H100 80GB HBM3"},
        {"memory": "9984Mi"},
    )
    found = discover([dra_node(product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb")], [slices_of("h100-0", part)])
    assert found.offerings == ()
    assert "mig.strategy to mixed" in problems(found)[0][1]


def test_a_gpu_that_is_not_what_the_label_says_is_a_problem():
    found = discover([dra_node()], [slices_of("h100-0", gpu(0), gpu(1, "NVIDIA A100-SXM4-80GB"))])
    assert found.pools[0].total == 1
    assert "gpu-1 is a NVIDIA A100-SXM4-80GB" in problems(found)[0][1]


def test_a_part_of_a_sick_gpu_is_not_counted():
    sick = [replace(part, taints=(("gpu.nvidia.com/xid", "79", "NoSchedule"),)) for part in divisible_gpu(1)]
    found = discover([dra_node()], [slices_of("h100-0", *divisible_gpu(0), *sick)])
    assert [(pool.key, pool.total) for pool in found.pools] == [("h100/slices", 1)]


def test_a_broken_mig_layout_is_said_and_not_offered():
    node = plugin_node("a30-0", "NVIDIA-A30-MIG-INVALID", {"nvidia.com/gpu": 0}, "24576")
    found = discover([node], [])
    assert found.offerings == ()
    assert "strategy single needs" in problems(found)[0][1]


def test_shares_without_a_number_are_a_problem():
    shareable = replace(gpu(0), shareable=True)
    found = discover([dra_node()], [slices_of("h100-0", shareable)])
    assert found.offerings == ()
    assert "consumableShares" in problems(found)[0][1]


def labelled(count: str, *devices: DeviceFact) -> Discovered:
    node = replace(dra_node(), labels={**dra_node().labels, "nvidia.com/gpu.count": count})
    return discover([node], [slices_of("h100-0", *devices)])


@pytest.mark.parametrize("devices", [(gpu(0), gpu(1)), (*divisible_gpu(0), *divisible_gpu(1))], ids=["whole", "mig"])
def test_another_number_of_gpus_by_dra_than_the_label_says_is_a_problem(devices):
    assert problems(labelled("2", *devices)) == ()
    assert "publishes 2 GPUs here, but the label nvidia.com/gpu.count is 8" in problems(labelled("8", *devices))[0][1]


def test_two_devices_of_one_uuid_are_a_problem():
    twin = replace(gpu(1), attributes=gpu(0).attributes)
    assert "publishes GPU-0 as 2 devices" in problems(labelled("2", gpu(0), twin))[0][1]
