"""The share of a GPU's price that a MIG slice by device plugin has: all units of a flavor are worth its GPUs."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.catalog import label_agreement, layouts
from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.mig_tables import TABLES
from quotas.catalog.types import NodeFact
from tests.support.gpu_facts import plugin_node

A100 = "NVIDIA-A100-SXM4-80GB"
STATE = "nvidia.com/mig.config.state"
BALANCED = {"1g.10gb": 16, "2g.20gb": 8, "3g.40gb": 8}
SHARES = {"1g.10gb": Fraction(2, 15), "2g.20gb": Fraction(4, 15), "3g.40gb": Fraction(7, 15)}
WEIGHTS = {"1g.10gb": Fraction(1, 7), "2g.20gb": Fraction(2, 7), "3g.40gb": Fraction(1, 2)}


def a100(
    units: Mapping[str, int] = BALANCED, gpus: int = 8, whole: int = 0, name: str = "a100-0", **labels
) -> NodeFact:
    amounts = {"nvidia.com/mig-" + profile.replace("+", "."): number for profile, number in units.items()}
    return plugin_node(name, A100, {**amounts, "nvidia.com/gpu": whole}, "81920", gpu_count=str(gpus))


def single(profile: str, devices: int, name: str = "a100-0") -> NodeFact:
    """Return a node with MIG by strategy `single`, whose labels count MIG devices."""
    return plugin_node(name, f"{A100}-MIG-{profile}", {"nvidia.com/gpu": devices}, "19968", gpu_count=str(devices))


def in_state(node: NodeFact, state: str) -> NodeFact:
    return replace(node, labels={**node.labels, STATE: state})


def shares(found: Discovered) -> dict[str, Fraction]:
    return {offering.profile: offering.gpu_share for offering in found.offerings if offering.profile}


def current(found: Discovered) -> dict[str, Fraction]:
    return {offering.key: offering.gpu_share for offering in found.offerings}


def gpus(found: Discovered) -> Fraction:
    """Return what all units of a catalog are worth by their offerings' shares."""
    pools = {pool.key: pool.total for pool in found.pools}
    return sum((pools[offering.pool] * offering.gpu_share for offering in found.offerings), Fraction(0))


def worth(found: Discovered) -> Fraction:
    """Return what the units of all nodes are worth as capacity."""
    counts = [(node.capacity, name, one) for node in found.nodes for name, one in node.gpus_per_unit.items()]
    return sum((capacity[name.removeprefix("nvidia.com/")] * one for capacity, name, one in counts), Fraction(0))


def test_a_full_node_with_a_mixed_layout_is_worth_its_gpus():
    """Their weights add up to 8.57 GPUs."""
    found = discover([a100()], [])
    assert shares(found) == SHARES
    assert gpus(found) == worth(found) == 8


def test_three_slices_that_leave_a_seventh_of_the_gpu_are_a_third_each():
    found = discover([single("2g.20gb", 6)], [])
    assert shares(found) == {"2g.20gb": Fraction(1, 3)}
    assert gpus(found) == worth(found) == 2


def test_a_slice_that_has_its_gpu_alone_is_worth_all_of_it():
    found = discover([a100({"1g.10gb+me": 8})], [])
    assert shares(found) == {"1g.10gb+me": 1}


def test_whole_gpus_beside_those_that_are_divided_are_taken_off():
    units = {profile: number // 2 for profile, number in BALANCED.items()}
    found = discover([a100(units, whole=4)], [])
    assert {offering.profile: offering.gpu_share for offering in found.offerings} == {"": 1, **SHARES}
    assert gpus(found) == worth(found) == 8


def test_time_slices_of_a_layout_are_worth_its_gpus_together():
    amounts = {f"nvidia.com/mig-{profile}.shared": 2 * number for profile, number in BALANCED.items()}
    labels = {f"nvidia.com/mig-{profile}.replicas": "2" for profile in BALANCED}
    node = replace(a100(), capacity=amounts, allocatable=amounts)
    found = discover([replace(node, labels={**node.labels, **labels})], [])
    assert shares(found) == {profile: share / 2 for profile, share in SHARES.items()}
    assert gpus(found) == worth(found) == 8


def test_nodes_with_different_layouts_are_worth_their_gpus_together():
    """A share is the mean of what the units are worth: 16 of 2/15 and 56 of 1/7."""
    found = discover([a100(), a100({"1g.10gb": 56}, name="a100-1")], [])
    assert shares(found) == {**SHARES, "1g.10gb": Fraction(19, 135)}
    assert gpus(found) == worth(found) == 16


def test_no_share_is_more_than_a_gpu():
    found = discover([a100({"4g.40gb": 8}), a100({"1g.10gb+me": 8}, name="a100-1")], [])
    assert shares(found) == {"4g.40gb": 1, "1g.10gb+me": 1}


GEOMETRY = TABLES["A100-80GB"]
FILLED = [layout for layout in layouts.layouts(GEOMETRY) if layouts.is_filled(GEOMETRY, layout)]


@given(st.lists(st.tuples(st.sampled_from(FILLED), st.integers(1, 8)), min_size=1, max_size=4))
def test_the_units_of_any_layouts_are_worth_the_gpus_of_their_nodes(nodes: list[tuple[Mapping[str, int], int]]):
    facts = [
        a100({profile: number * count for profile, number in layout.items()}, count, name=f"a100-{index}")
        for index, (layout, count) in enumerate(nodes)
    ]
    found = discover(facts, [])
    assert gpus(found) == worth(found) == sum(count for _, count in nodes)
    assert all(0 < share <= 1 for share in shares(found).values())


def test_a_node_that_is_not_usable_counts():
    down = replace(a100({"1g.10gb": 56}, name="a100-1"), ready=False)
    assert shares(discover([a100(), down], [])) == shares(discover([a100(), replace(down, ready=True)], []))


def test_unhealthy_devices_change_no_share():
    sick = {"nvidia.com/mig-1g.10gb": 14, "nvidia.com/mig-2g.20gb": 7, "nvidia.com/mig-3g.40gb": 7}
    assert shares(discover([replace(a100(), allocatable=sick)], [])) == SHARES


INCOMPLETE = {
    "one GPU less": a100(gpus=7),
    "a GPU is empty": a100({"1g.10gb": 14, "2g.20gb": 7, "3g.40gb": 7}),
    "old resources": a100({**BALANCED, "1g.10gb": 56}),
    "half of the GPUs": a100({"3g.40gb": 8}),
    "different GPUs": a100({"1g.10gb": 28, "3g.40gb": 8}),
    "fewer devices than GPUs": a100({"3g.40gb": 2}),
    "unknown number": a100(gpus=0),
    "an unknown profile": a100({"1g.11gb": 8}),
    "pending": in_state(a100({"1g.10gb": 56}), "pending"),
    "failed": in_state(a100(), "failed"),
}


@pytest.mark.parametrize("node", INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_layout_that_is_not_complete_is_priced_by_weight_at_first(node: NodeFact):
    assert all(WEIGHTS.get(profile, share) == share for profile, share in shares(discover([node], [])).items())


@pytest.mark.parametrize("node", INCOMPLETE.values(), ids=INCOMPLETE)
def test_no_share_changes_while_a_layout_is_not_complete(node: NodeFact):
    before = discover([a100()], [])
    after = shares(discover([node], [], current_shares=current(before)))
    assert all(SHARES.get(profile, share) == share for profile, share in after.items())


@pytest.mark.parametrize("state", ["pending", "rebooting", "failed"])
def test_no_share_changes_while_another_node_is_divided_that_publishes_nothing_meanwhile(state: str):
    nodes = [a100(), a100({"1g.10gb": 56}, name="a100-1")]
    before = discover(nodes, [])
    empty = in_state(a100({}, name="a100-1"), state)
    assert shares(discover([nodes[0], empty], [], current_shares=current(before))) == shares(before)


def test_a_new_profile_is_priced_by_weight_until_its_layout_is_complete():
    before = discover([a100()], [])
    new = in_state(a100({"4g.40gb": 8}, name="a100-1"), "pending")
    after = shares(discover([a100(), new], [], current_shares=current(before)))
    assert after == {**SHARES, "4g.40gb": Fraction(4, 7)}


def test_a_complete_layout_changes_the_shares():
    before = discover([in_state(a100(), "success")], [])
    after = discover([in_state(a100({"1g.10gb": 56}), "success")], [], current_shares=current(before))
    assert (shares(before)["1g.10gb"], shares(after)["1g.10gb"]) == (Fraction(2, 15), Fraction(1, 7))


def test_the_part_of_the_memory_stays_as_it_is():
    parts = {offering.profile: offering.memory_part for offering in discover([a100()], []).offerings}
    assert parts == {"1g.10gb": Fraction(1, 8), "2g.20gb": Fraction(1, 4), "3g.40gb": Fraction(1, 2)}


@pytest.mark.parametrize(
    ("product", "count", "gpus"),
    [
        (A100, "8", 8),
        (A100, "", None),
        (f"{A100}-MIG-2g.20gb", "24", 8),
        (f"{A100}-MIG-2g.20gb-SHARED", "23", 8),
        (f"{A100}-MIG-1g.10gb.me", "8", 8),
        (f"{A100}-MIG-1g.11gb", "8", None),
        (f"{A100}-MIG-INVALID", "0", None),
        ("NVIDIA-X900-MIG-1g.10gb", "7", None),
        ("NVIDIA-X900-MIG-7g.80gb", "2", 2),
    ],
)
def test_the_physical_gpus_of_a_node_are_as_many_as_its_labels_say(product: str, count: str, gpus: int | None):
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": count, "nvidia.com/gpu.memory": "19968"}
    assert label_agreement.physical_gpus(labels) == gpus
