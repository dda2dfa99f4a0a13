"""Names and node selectors of discovered flavors."""

from dataclasses import replace
from itertools import permutations

from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.types import FoundOffering
from tests.support.gpu_facts import dra_node, gpu, plugin_node, problems, slices_of

UNSHARED = {"nvidia.com/device-plugin.config": "unshared", "nvidia.com/gpu.deploy.device-plugin": "true"}
BY_DRA = {"nvidia.com/gpu.deploy.device-plugin": "false"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def slices_in(found: Discovered) -> list[FoundOffering]:
    """Return the offerings except custom claims, which every flavor by DRA has."""
    return [offering for offering in found.offerings if offering.kind != "claim"]


def test_a_flavor_keeps_its_name_whatever_comes_later():
    pcie = plugin_node("pcie-0", "NVIDIA-H100-PCIe", memory="81559")
    sxm = plugin_node("sxm-0", "NVIDIA-H100-80GB-HBM3", memory="81559")
    (first,) = discover([pcie], []).flavors
    known = {first.identity: first.name}
    assert [flavor.name for flavor in discover([sxm, pcie], [], current_names=known).flavors] == ["h100", "h100-80gb"]
    assert discover([sxm, pcie], [], current_names=known).flavors[0].identity == first.identity


def test_names_of_other_clusters_are_not_taken_again():
    (flavor,) = discover([plugin_node()], [], reserved_names={"l40s"}).flavors
    assert flavor.name == "l40s-45gb"


def test_flavors_of_one_product_are_told_apart_by_labels():
    shared = plugin_node(
        "t4-0", "Tesla-T4", {"nvidia.com/gpu.shared": 16}, gpu_replicas="4", gpu_sharing__strategy="mps"
    )
    plain = plugin_node("t4-1", "Tesla-T4", gpu_replicas="1", gpu_sharing__strategy="none")
    selectors = {flavor.identity.strategy: flavor.node_selector for flavor in discover([shared, plain], []).flavors}
    assert selectors == {
        "mps-4": {
            "nvidia.com/gpu.product": "Tesla-T4",
            "nvidia.com/gpu.sharing-strategy": "mps",
            "nvidia.com/gpu.replicas": "4",
        },
        "plain": {
            "nvidia.com/gpu.product": "Tesla-T4",
            "nvidia.com/gpu.sharing-strategy": "none",
        },
    }


def test_a_selector_is_the_same_whether_a_second_flavor_is_there_or_not():
    ours, twin = plugin_node("l40s-0"), dra_node("l40s-1", "NVIDIA-L40S")
    ours = replace(ours, labels={**ours.labels, **UNSHARED})
    twin = replace(twin, labels={**twin.labels, **BY_DRA})
    (alone,) = discover([ours], []).flavors
    both = discover([ours, twin], [slices_of("l40s-1", gpu(0, "NVIDIA L40S"))])
    assert [flavor.identity.path for flavor in both.flavors] == ["device-plugin", "dra"]
    assert both.flavors[0].node_selector == alone.node_selector


def test_flavors_that_no_label_tells_apart_are_offered_once():
    by_plugin = plugin_node("h100-1", "NVIDIA-H100-80GB-HBM3", {"nvidia.com/gpu": 8}, "81559")
    found = discover([dra_node(), by_plugin], [slices_of("h100-0", gpu(0))])
    assert len(found.flavors) == 1
    assert "no label tells it from flavor h100" in problems(found)[0][1]


def test_the_order_of_facts_does_not_matter():
    nodes = [plugin_node(), plugin_node("l40s-1"), dra_node()]
    slices = [slices_of("h100-0", gpu(0))]
    expected = discover(nodes, slices)
    assert all(discover(order, slices) == expected for order in permutations(nodes))
