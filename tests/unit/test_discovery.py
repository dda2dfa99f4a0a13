"""Discovery from nodes, case by case."""

from dataclasses import replace
from fractions import Fraction

import pytest

from quotas.catalog.discovery import DeviceFact, Discovered, Identity, discover
from quotas.catalog.types import ClassFact, FoundDevice, FoundFlavor, FoundNode, FoundOffering, FoundPool
from tests.support.gpu_facts import divisible_gpu, dra_node, gpu, plugin_node, problems, slices_of

UNSHARED = {"nvidia.com/device-plugin.config": "unshared", "nvidia.com/gpu.deploy.device-plugin": "true"}
BY_DRA = {"nvidia.com/gpu.deploy.device-plugin": "false"}
WHOLE = {"nvidia.com/gpu": Fraction(1)}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def slices_in(found: Discovered) -> list[FoundOffering]:
    """Return the offerings except custom claims, which every flavor by DRA has."""
    return [offering for offering in found.offerings if offering.kind != "claim"]


def test_every_flavor_by_dra_takes_claims_of_ones_own():
    found = discover([dra_node(), plugin_node()], [slices_of("h100-0", gpu(0))])
    (claim,) = [offering for offering in found.offerings if offering.kind == "claim"]
    assert (claim.key, claim.pool, claim.requests) == ("h100/claim", "h100/gpu", {})
    assert claim.gpu_share == Fraction(1)


def test_whole_gpus_by_device_plugin():
    found = discover([plugin_node(), plugin_node("l40s-1")], [])
    assert found.flavors == (
        FoundFlavor(
            name="l40s",
            identity=Identity("NVIDIA-L40S", "device-plugin", "plain"),
            architecture="ada-lovelace",
            memory_mib=46068,
            compute_capability="8.9",
            node_selector={"nvidia.com/gpu.product": "NVIDIA-L40S"},
            tolerations=(TOLERATION,),
            partitionable=False,
        ),
    )
    assert found.pools == (FoundPool("l40s/gpu", "l40s", {"nvidia.com/gpu": 1}, 8),)
    assert found.offerings == (
        FoundOffering(
            key="l40s/whole",
            flavor="l40s",
            pool="l40s/gpu",
            kind="whole",
            profile="",
            isolation="full",
            requests={"nvidia.com/gpu": 1},
            resource="nvidia.com/gpu",
            device_class="",
            selectors=(),
            gpu_share=Fraction(1),
            per_node=4,
            memory_mib=46068,
        ),
    )
    assert found.nodes == (
        FoundNode(
            "l40s-0", "l40s", True, True, "", {"gpu": 4}, {"gpu": 4}, gpus_per_unit={"nvidia.com/gpu": Fraction(1)}
        ),
        FoundNode(
            "l40s-1", "l40s", True, True, "", {"gpu": 4}, {"gpu": 4}, gpus_per_unit={"nvidia.com/gpu": Fraction(1)}
        ),
    )
    assert (found.devices, problems(found)) == ((), ())


def test_whole_gpus_by_dra_on_gpus_that_cannot_be_divided():
    classes = [ClassFact("gpu.nvidia.com", "nvidia.com/gpu")]
    found = discover([dra_node()], [slices_of("h100-0", gpu(0), gpu(1))], classes=classes)
    assert found.pools == (FoundPool("h100/gpu", "h100", {"nvidia.com/gpu": 1}, 2),)
    (offering,) = slices_in(found)
    assert offering == FoundOffering(
        key="h100/whole",
        flavor="h100",
        pool="h100/gpu",
        kind="whole",
        profile="",
        isolation="full",
        requests={"nvidia.com/gpu": 1},
        resource="",
        device_class="gpu.nvidia.com",
        selectors=(
            '"productName" in device.attributes["gpu.nvidia.com"] && '
            'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3"',
        ),
        gpu_share=Fraction(1),
        per_node=2,
        memory_mib=81559,
    )
    assert found.flavors[0].identity == Identity("NVIDIA-H100-80GB-HBM3", "dra", "plain")
    assert found.devices[0] == FoundDevice("h100-0", "gpu-0", "GPU-0", "h100", True, gpu(0).attributes)


@pytest.mark.parametrize("classes", [(), (("gpu.nvidia.com", ""),), (("other", "nvidia.com/gpu"),)])
def test_gpus_that_no_job_can_ask_for_are_counted_in_a_resource_of_the_portals_own(classes):
    slices = [slices_of("h100-0", gpu(0), gpu(1))]
    found = discover([dra_node()], slices, classes=[ClassFact(*each) for each in classes])
    assert found.pools == (FoundPool("h100/gpu", "h100", {"gpu-portal.io/gpus": 1}, 2),)
    assert slices_in(found)[0].requests == {"gpu-portal.io/gpus": 1}


@pytest.mark.parametrize(
    ("name", "expression", "prefix"),
    [
        ("nvidia.com/mig-1g.10gb", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'", "nvidia.com"),
        ("nvidia.com/mig-1g.10gb", 'device.attributes["gpu.nvidia.com"]["profile"] == "1g.10gb"', "nvidia.com"),
        ("nvidia.com/mig-1g.10gb", "device.attributes['gpu.nvidia.com'].type == 'mig'", "gpu-portal.io"),
        ("nvidia.com/small", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'", "gpu-portal.io"),
    ],
)
def test_a_profile_that_was_cut_beforehand_is_asked_for_by_the_class_that_selects_it(name, expression, prefix):
    attributes = {"type": "mig", "profile": "1g.10gb", "productName": "NVIDIA H100 80GB HBM3"}
    classes = [ClassFact("small", name, (expression,))]
    found = discover([dra_node()], [slices_of("h100-0", DeviceFact("gpu-0-mig-0", attributes))], classes=classes)
    assert [pool.resources for pool in found.pools] == [{f"{prefix}/mig-1g.10gb": 1}]


def test_divisible_gpus_are_counted_in_compute_and_memory_slices():
    found = discover([dra_node()], [slices_of("h100-0", *divisible_gpu(0), *divisible_gpu(1))])
    unit = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}
    assert found.pools == (FoundPool("h100/slices", "h100", unit, 2),)
    one = {"gpu-portal.io/compute-slices": 1, "gpu-portal.io/memory-slices": 1}
    assert [(o.key, o.pool, o.requests, o.per_node) for o in slices_in(found)] == [
        ("h100/mig-1g.10gb", "h100/slices", one, 2),
        ("h100/mig-7g.80gb", "h100/slices", unit, 2),
        ("h100/whole", "h100/slices", unit, 2),
    ]
    assert found.flavors[0].partitionable
    assert [device.name for device in found.devices] == ["gpu-0", "gpu-1"]


def test_mig_by_device_plugin_gives_one_pool_and_offering_per_profile():
    amounts = {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-3g.40gb": 8, "nvidia.com/mig-1g.10gb.me": 1}
    node = plugin_node("a100-0", "NVIDIA-A100-SXM4-80GB", {**amounts, "nvidia.com/gpu": 0}, "81920")
    found = discover([node], [])
    assert [(pool.key, pool.resources, pool.total) for pool in found.pools] == [
        ("a100/mig-1g.10gb", {"nvidia.com/mig-1g.10gb": 1}, 16),
        ("a100/mig-1g.10gb.me", {"nvidia.com/mig-1g.10gb.me": 1}, 1),
        ("a100/mig-3g.40gb", {"nvidia.com/mig-3g.40gb": 1}, 8),
    ]
    assert [(o.key, o.kind, o.profile, o.isolation, o.gpu_share) for o in slices_in(found)] == [
        ("a100/mig-1g.10gb", "mig", "1g.10gb", "hardware", Fraction(1, 7)),
        ("a100/mig-1g.10gb+me", "mig", "1g.10gb+me", "hardware", Fraction(1, 7)),
        ("a100/mig-3g.40gb", "mig", "3g.40gb", "hardware", Fraction(1, 2)),
    ]


def test_time_slices_are_shared_and_not_isolated():
    node = plugin_node(
        "t4-0",
        "Tesla-T4",
        {"nvidia.com/gpu.shared": 16},
        gpu_replicas="4",
        gpu_sharing__strategy="time-slicing",
    )
    found = discover([node], [])
    (offering,) = slices_in(found)
    assert (offering.key, offering.pool, offering.kind) == ("t4/shared", "t4/gpu.shared", "shared")
    assert (offering.isolation, offering.gpu_share, offering.per_node) == ("none", Fraction(1, 4), 16)
    assert found.flavors[0].identity.strategy == "time-slicing-4"


def test_time_slices_that_were_not_renamed_are_shared_too():
    node = plugin_node("t4-0", "Tesla-T4-SHARED", gpu_replicas="4", gpu_sharing__strategy="mps")
    (offering,) = discover([node], []).offerings
    assert (offering.key, offering.pool, offering.isolation) == ("t4/shared", "t4/gpu", "none")
    assert offering.gpu_share == Fraction(1, 4)


def test_shares_of_a_mig_profile_cost_their_part_of_it():
    amounts = {"nvidia.com/mig-1g.10gb.shared": 14}
    labels = {
        "nvidia.com/mig-1g.10gb.replicas": "2",
        "nvidia.com/mig-1g.10gb.sharing-strategy": "time-slicing",
    }
    node = plugin_node("a100-0", "NVIDIA-A100-SXM4-80GB", amounts, "81920")
    (offering,) = discover([replace(node, labels={**node.labels, **labels})], []).offerings
    assert (offering.key, offering.isolation) == ("a100/shared-1g.10gb", "none")
    assert offering.gpu_share == Fraction(1, 14)


def test_mig_by_strategy_single_is_named_by_the_product_label():
    node = plugin_node("a100-0", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", {"nvidia.com/gpu": 7}, "9856")
    (offering,) = discover([node], []).offerings
    assert (offering.key, offering.pool, offering.gpu_share) == (
        "a100/mig-1g.10gb",
        "a100/gpu",
        Fraction(1, 7),
    )


def test_other_resources_of_nvidia_are_no_gpus():
    found = discover([plugin_node(amounts={"nvidia.com/gpu": 1, "nvidia.com/hostdev": 8})], [])
    assert [pool.key for pool in found.pools] == ["l40s/gpu"]
    network = replace(plugin_node(amounts={"nvidia.com/hostdev": 8}), labels={})
    assert discover([network], []).nodes == ()


def test_a_thousand_shares_are_read_as_kubernetes_writes_them():
    shareable = replace(gpu(0), shareable=True, capacity={"memory": "81559Mi", "shares": "1k"})
    (found,) = slices_in(discover([dra_node()], [slices_of("h100-0", shareable)]))
    assert found.replicas == 1000


def test_whole_gpus_beside_gpus_that_were_cut_beforehand_are_offered_too():
    part = DeviceFact(
        "gpu-0-mig-3g40gb-9-0",
        {"type": "mig", "profile": "3g.40gb", "parentUUID": "GPU-0", "productName": "NVIDIA H100 80GB HBM3"},
        {"memory": "40448Mi"},
    )
    found = discover([dra_node()], [slices_of("h100-0", part, gpu(1), gpu(2))])
    assert {(pool.key, pool.total) for pool in found.pools} == {("h100/gpu", 2), ("h100/mig-3g.40gb", 1)}
    assert [d.name for d in found.devices] == ["gpu-1", "gpu-2", "gpu-0-mig-3g40gb-9-0"]


def test_a_profile_of_a_product_that_no_table_lists_is_worth_its_part_of_the_memory_too():
    """1g.64gb of a GPU of 256 GiB is a quarter of it, although it has one of seven compute slices."""
    part = DeviceFact(
        "gpu-0-mig-1g64gb-15-0",
        {"type": "mig", "profile": "1g.64gb", "parentUUID": "GPU-0", "productName": "NVIDIA X900"},
        {"memory": "65536Mi"},
    )
    node = plugin_node("x900-0", "NVIDIA-X900", {}, str(256 * 1024))
    (found,) = slices_in(discover([node], [slices_of("x900-0", part)]))
    assert found.gpu_share == Fraction(1, 4)


def test_where_the_driver_announces_parts_only_a_gpu_is_known_by_them():
    parts = [*divisible_gpu(0)[1:], *divisible_gpu(1)[1:]]
    found = discover([dra_node()], [slices_of("h100-0", *parts)])
    assert [(pool.key, pool.total) for pool in found.pools] == [("h100/slices", 2)]
    assert "h100/whole" not in [o.key for o in slices_in(found)]
    assert [(d.name, d.uuid) for d in found.devices] == [("gpu-0", "GPU-0"), ("gpu-1", "GPU-1")]
