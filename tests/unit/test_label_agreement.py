"""What a node publishes agrees with its own labels, or it is a problem of the node: told, and not offered as whole."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.types import GpuMemory, NodeFact
from tests.support import node_shapes
from tests.support.gpu_facts import plugin_node
from tests.support.node_shapes import GPU, NodeShape
from tests.support.sizes import size

EXAMPLES = settings(max_examples=size(60, 1000), deadline=None)
H100, TWO_SLICED = "NVIDIA-H100-80GB-HBM3", {"gpu_count": "2", "gpu_replicas": "0"}


def offered(found: Discovered) -> dict[str, tuple[str, Fraction]]:
    return {one.key.partition("/")[2]: (one.isolation, one.gpu_share) for one in found.offerings}


def problem(found: Discovered) -> str:
    (node,) = found.nodes
    return node.problem


def worth(found: Discovered) -> Fraction | int:
    """Return the GPUs that the units of the node are as capacity."""
    (node,) = found.nodes
    units = {f"nvidia.com/{pool}": count for pool, count in node.capacity.items()}
    return sum((units[name] * each for name, each in node.gpus_per_unit.items()), Fraction(0))


def full(found: Discovered) -> int:
    """Return the most units that are offered as whole GPUs without anybody else on them."""
    return sum(one.per_node for one in found.offerings if one.isolation == "full")


CONTRADICTIONS = {
    "shares of another configuration": (
        plugin_node("n", "NVIDIA-A10G", {GPU: 12}, gpu_count="1", gpu_replicas="1", gpu_sharing__strategy="none"),
        ({}, 1, "it publishes 12 nvidia.com/gpu, but its label nvidia.com/gpu.count is 1"),
    ),
    "two kinds of GPU, of which the labels count one": (
        plugin_node("n", H100, {GPU: 8}, gpu_count="4"),
        ({}, 4, "they are not offered as whole GPUs"),
    ),
    "whole GPUs left over beside MIG": (
        plugin_node("n", H100, {GPU: 2, "nvidia.com/mig-1g.10gb": 14}, "81559", **TWO_SLICED),
        ({"mig-1g.10gb": ("hardware", Fraction(1, 7))}, 2, "it publishes 2 nvidia.com/gpu beside 14 nvidia.com/mig-1g"),
    ),
    "whole GPUs beside shares": (
        plugin_node("n", "NVIDIA-L4", {GPU: 4, f"{GPU}.shared": 8}, gpu_count="4", gpu_replicas="4"),
        ({"shared": ("none", Fraction(1, 4))}, 4, "it publishes nvidia.com/gpu beside nvidia.com/gpu.shared"),
    ),
    "shared without a number, by the product": (
        plugin_node("n", "Tesla-T4-SHARED", {GPU: 50}, gpu_count="1"),
        ({}, 1, "nvidia.com/gpu is shared, but the label nvidia.com/gpu.replicas does not say by how many"),
    ),
    "shared without a number, by the strategy": (
        plugin_node("n", "Tesla-T4", {GPU: 4}, gpu_count="4", gpu_replicas="1", gpu_sharing__strategy="mps"),
        ({}, 4, "nvidia.com/gpu is shared"),
    ),
    "renamed shares without a number": (
        plugin_node("n", "Tesla-T4", {f"{GPU}.shared": 50}, gpu_count="1", gpu_replicas="1"),
        ({}, 1, "nvidia.com/gpu.shared is shared"),
    ),
    "more shares than the labels allow": (
        plugin_node("n", "Tesla-T4", {f"{GPU}.shared": 48}, gpu_count="1", gpu_replicas="4"),
        ({}, 1, "it publishes 48 nvidia.com/gpu.shared, but its label nvidia.com/gpu.count is 1"),
    ),
    "shares that are no multiple of the replicas": (
        plugin_node("n", "Tesla-T4", {f"{GPU}.shared": 14}, gpu_count="4", gpu_replicas="4"),
        ({}, 4, "no multiple of its label nvidia.com/gpu.replicas, 4"),
    ),
    "more MIG devices by strategy single": (
        plugin_node("n", f"{H100}-MIG-1g.10gb", {GPU: 56}, "9984", gpu_count="14"),
        ({}, 2, "it publishes 56 nvidia.com/gpu, but its label nvidia.com/gpu.count is 14, so they are not offered."),
    ),
    "MIG devices of more GPUs": (
        plugin_node("n", H100, {"nvidia.com/mig-1g.10gb": 56}, "81559", gpu_count="2"),
        ({"mig-1g.10gb": ("hardware", Fraction(1, 7))}, 2, "it publishes MIG devices of 8 GPUs"),
    ),
    "MIG devices of strategy mixed left over beside those of single": (
        plugin_node("n", f"{H100}-MIG-1g.10gb", {GPU: 7, "nvidia.com/mig-1g.10gb": 7}, "9984", gpu_count="7"),
        (
            {"mig-1g.10gb": ("hardware", Fraction(1, 7))},
            1,
            "it publishes 7 nvidia.com/mig-1g.10gb beside 7 nvidia.com/",
        ),
    ),
    "labels of another profile": (
        replace(
            plugin_node("n", "NVIDIA-A100-SXM4-40GB", {"nvidia.com/mig-3g.20gb": 16}, "40537", gpu_count="8"),
            labels={
                **plugin_node("n", "NVIDIA-A100-SXM4-40GB", memory="40537", gpu_count="8").labels,
                "nvidia.com/mig-3g.21gb.count": "16",
            },
        ),
        ({"mig-3g.20gb": ("hardware", Fraction(1, 2))}, 8, "its label nvidia.com/mig-3g.21gb.count is 16"),
    ),
    "MIG devices without a profile": (
        plugin_node("n", H100, {GPU: 7}, "9984", gpu_count="7", gpu_slices_gi="1"),
        ({}, 7, "its label nvidia.com/gpu.slices.gi says that nvidia.com/gpu are MIG devices"),
    ),
    "shared in a way that nobody knows": (
        plugin_node("n", "Tesla-T4", {GPU: 4}, gpu_count="4", gpu_replicas="1", gpu_sharing__strategy="Time-Slicing"),
        ({}, 4, "nvidia.com/gpu is shared"),
    ),
    "fewer GPUs than labelled": (
        plugin_node("n", "NVIDIA-L40S", {GPU: 3}, gpu_count="4"),
        ({"whole": ("full", Fraction(1))}, 3, "it publishes 3 of the 4 that its label nvidia.com/gpu.count says"),
    ),
}


@pytest.mark.parametrize(("node", "expected"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_told_and_nothing_offered_that_it_makes_doubtful(node: NodeFact, expected):
    found = discover([node], [])
    offers, gpus, words = expected
    assert (offered(found), worth(found)) == (offers, gpus)
    assert words in problem(found)


@EXAMPLES
@given(node_shapes.nodes)
def test_what_agrees_is_offered_whole_and_without_a_problem(shape: NodeShape):
    found = discover([shape.fact], [])
    assert (problem(found), worth(found)) == ("", shape.gpus)
    assert {one.resource for one in found.offerings} == shape.fact.capacity.keys()


@EXAMPLES
@given(node_shapes.nodes, st.data())
def test_one_other_number_is_told(shape: NodeShape, data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(shape.fact.capacity)))
    now, is_beside_mig = shape.fact.capacity[name], name == GPU and len(shape.fact.capacity) > 1
    # Beside MIG devices some numbers agree too: those on one GPU may as well be on two.
    others = st.integers(shape.gpus + 1 if is_beside_mig else 1, 200)
    amount = data.draw(others.filter(lambda number: number != now))
    changed = {**shape.fact.capacity, name: amount}
    found = discover([replace(shape.fact, capacity=changed, allocatable=changed)], [])
    assert problem(found)
    assert full(found) <= shape.gpus
    assert worth(found) <= shape.gpus


@EXAMPLES
@given(
    shape=node_shapes.nodes,
    gpu=st.integers(0, 40),
    shared=st.integers(0, 40),
    count=st.integers(1, 20),
    replicas=st.integers(0, 5),
)
def test_never_more_whole_gpus_than_the_labels_count(
    shape: NodeShape, gpu: int, shared: int, count: int, replicas: int
):
    node = replace(shape, fact=shape.publishing(gpu=gpu, gpu__shared=shared))
    found = discover([node.labelled(count=str(count), replicas=str(replicas))], [])
    assert full(found) <= count
    is_counted_in_gpus = "-MIG-" not in shape.fact.labels[f"{GPU}.product"]
    assert not is_counted_in_gpus or worth(found) <= count


@pytest.mark.parametrize("text", ["eight", "-1", "4.0", "1e3", "0x4", "9999999999"])
@pytest.mark.parametrize("label", ["gpu_count", "gpu_replicas"])
def test_a_label_that_is_no_number_makes_nothing_whole(label: str, text: str):
    found = discover([plugin_node(amounts={GPU: 4}, **{label: text})], [])
    assert offered(found) == {}
    assert f"its label nvidia.com/{label.replace('_', '.')} is {text}, which is no number" in problem(found)


def test_without_a_label_of_the_count_nothing_contradicts():
    found = discover([plugin_node(amounts={GPU: 4})], [])
    assert (offered(found), problem(found)) == ({"whole": ("full", Fraction(1))}, "")


@pytest.mark.parametrize("healthy", [0, 3])
def test_units_that_are_not_healthy_are_told(healthy: int):
    found = discover([replace(plugin_node(), allocatable={GPU: healthy})], [])
    assert f"{healthy} of 4 nvidia.com/gpu are healthy" in problem(found)
    assert found.pools[0].total == healthy


@pytest.mark.parametrize("labels", [{}, {"gpu_present": "true"}, {"gpu_count": "4"}])
def test_a_node_that_publishes_nothing_any_more_does_not_vanish(labels: dict[str, str]):
    found = discover([plugin_node(amounts={}, **labels)], [])
    assert found.offerings == ()
    assert "neither the device plugin nor the DRA driver publishes any" in problem(found)


def test_nor_does_one_whose_labels_are_gone_too():
    found = discover([replace(plugin_node(amounts={GPU: 0}), labels={})], [])
    assert "neither the device plugin nor the DRA driver publishes any" in problem(found)


UNLISTED = "NVIDIA-X100-SXM9"
SLICED = plugin_node("n", f"{UNLISTED}-MIG-2g.48gb", {GPU: 6}, "49152", gpu_count="6")


def test_how_an_unlisted_gpu_is_divided_is_not_guessed():
    found = discover([SLICED], [])
    assert [(flavor.name, flavor.identity.product) for flavor in found.flavors] == [("x100", f"{UNLISTED}-MIG-2g.48gb")]
    assert (found.offerings, found.pools) == ((), ())
    assert f"how {UNLISTED} is divided is not known" in problem(found)
    assert "set the memory of a whole GPU" in problem(found)


def test_it_is_known_once_the_memory_of_a_whole_gpu_is_set():
    found = discover([SLICED], [], gpu_memory=GpuMemory({UNLISTED: 192 * 1024}))
    assert (offered(found), worth(found), problem(found)) == (
        {"mig-2g.48gb": ("hardware", Fraction(1, 3))},
        2,
        "",
    )


def test_it_is_known_from_another_node_with_such_gpus_that_are_not_divided():
    found = discover([SLICED, plugin_node("w", UNLISTED, {GPU: 8}, str(192 * 1024), gpu_count="8")], [])
    assert offered(found)["mig-2g.48gb"] == ("hardware", Fraction(1, 3))


def test_a_slice_with_all_compute_slices_is_the_whole_gpu():
    found = discover([plugin_node("n", f"{UNLISTED}-MIG-7g.192gb", {GPU: 4}, "196608", gpu_count="4")], [])
    assert (offered(found), worth(found)) == ({"mig-7g.192gb": ("hardware", Fraction(1))}, 4)


def test_a_slice_that_has_an_unlisted_gpu_alone_is_worth_all_of_it():
    node = plugin_node("n", f"{UNLISTED}-MIG-4g.96gb", {GPU: 4}, "98304", gpu_count="4")
    found = discover([node], [], gpu_memory=GpuMemory({UNLISTED: 192 * 1024}))
    assert (offered(found), worth(found)) == ({"mig-4g.96gb": ("hardware", Fraction(1))}, 4)


def test_it_is_known_from_the_number_of_devices_and_gpus_where_all_are_divided_alike():
    """The labels of strategy mixed count GPUs; here none says their memory."""
    node = plugin_node("n", UNLISTED, {"nvidia.com/mig-2g.48gb": 6}, "", gpu_count="2")
    found = discover([node], [])
    assert (offered(found), worth(found), problem(found)) == ({"mig-2g.48gb": ("hardware", Fraction(1, 3))}, 2, "")


@pytest.mark.parametrize("more", [{"nvidia.com/mig-1g.24gb": 2}, {"nvidia.com/mig-2g.48gb": 5}])
def test_it_is_not_known_from_their_number_where_gpus_may_differ(more: dict[str, int]):
    node = plugin_node("n", UNLISTED, {"nvidia.com/mig-2g.48gb": 6, **more}, "", gpu_count="2")
    assert "is divided is not known" in problem(discover([node], []))


@EXAMPLES
@given(st.lists(node_shapes.nodes, min_size=1, max_size=6), st.data())
def test_an_offering_has_one_pool(shapes: list[NodeShape], data: st.DataObject):
    """Also where nodes are labelled by hand, so that those with renamed and with other resources are of one flavor."""
    facts = []
    for number, shape in enumerate(shapes):
        resource, extra = data.draw(st.tuples(st.sampled_from([GPU, f"{GPU}.shared"]), st.integers(0, 8)))
        amounts = {**shape.fact.capacity, resource: extra}
        labels = {**shape.fact.labels, f"{GPU}.product": shape.fact.labels[f"{GPU}.product"].removesuffix("-SHARED")}
        facts.append(replace(shape.fact, name=f"n-{number}", labels=labels, capacity=amounts, allocatable=amounts))
    found = discover(facts, [])
    keys = [one.key for one in found.offerings]
    assert len(keys) == len(set(keys))
    assert {one.pool for one in found.offerings} == {one.key for one in found.pools}


def test_nodes_of_one_flavor_that_name_their_shares_differently_are_told():
    shares = {"gpu_count": "1", "gpu_replicas": "4"}
    nodes = [plugin_node("a", "Tesla-T4", {GPU: 4}, **shares)]
    nodes.append(plugin_node("b", "Tesla-T4", {f"{GPU}.shared": 4}, **shares))
    found = discover(nodes, [])
    assert [(one.key, one.pool) for one in found.offerings] == [("t4/shared", "t4/gpu")]
    assert [(node.name, node.flavor, bool(node.problem)) for node in found.nodes] == [
        ("a", "t4", False),
        ("b", "", True),
    ]
