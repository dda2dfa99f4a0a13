"""What still fits on GPUs, how much of it at the same time, and the choice of a GPU for a slice."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.capacity import device_choice
from allocations.capacity.devices import PhysicalGpu, SliceShape
from allocations.capacity.packing import FlavorDevices
from quotas.catalog import layouts
from quotas.catalog.mig_tables import TABLES

H100 = TABLES["H100-80GB"]
WHOLE = SliceShape("whole")


def mig(profile: str) -> SliceShape:
    return SliceShape("mig", profile)


def device(gpu: str, profile: str, start: int) -> str:
    one = H100.profile(profile)
    return f"{gpu}-mig-{layouts.device_label(one.name)}-{one.gi_id}-{start}"


def gpu(number: int, *taken: tuple[str, int], node: str = "h100-0", clique: str = "") -> PhysicalGpu:
    name = f"gpu-{number}"
    return PhysicalGpu(
        node=node,
        name=name,
        uuid=f"GPU-{node}-{number}",
        pcie_root=f"pci{number // 2}",
        clique=clique,
        allocated=tuple(device(name, profile, start) for profile, start in taken),
    )


def node(count: int, name: str = "h100-0", clique: str = "") -> list[PhysicalGpu]:
    return [gpu(number, node=name, clique=clique) for number in range(count)]


def cut(*gpus: PhysicalGpu) -> FlavorDevices:
    return FlavorDevices(gpus, H100)


class TestRoom:
    def test_of_an_empty_gpu_a_whole_or_the_most_of_a_profile(self) -> None:
        empty = cut(gpu(0))
        assert empty.total(WHOLE) == 1
        assert {p.name: empty.total(mig(p.name)) for p in H100.profiles} == {
            p.name: p.max_instances for p in H100.profiles
        }

    def test_what_stands_in_the_way_counts_not_what_is_left(self) -> None:
        """Two slices of seven are in use, and neither a 3g nor a 4g fits any more."""
        there = cut(gpu(0, ("1g.10gb", 0), ("1g.10gb", 4)))
        assert there.total(WHOLE) == there.total(mig("4g.40gb")) == there.total(mig("3g.40gb")) == 0
        assert there.total(mig("1g.10gb")) == 5
        assert there.total(mig("3g.40gb"), empty=True) == 2

    def test_nothing_fits_on_a_gpu_that_somebody_has_whole(self) -> None:
        taken = cut(replace(gpu(0), allocated=("gpu-0",)))
        assert [taken.total(shape) for shape in (WHOLE, mig("1g.10gb"))] == [0, 0]

    def test_a_gpu_that_is_not_cut_is_taken_or_free(self) -> None:
        assert FlavorDevices([gpu(0), replace(gpu(1), allocated=("gpu-1",))]).total(WHOLE) == 1

    def test_shares_of_a_gpu_are_counted_once_for_each_claim(self) -> None:
        share = SliceShape("shared", replicas=4)
        there = FlavorDevices([replace(gpu(0), allocated=("gpu-0",) * 3), gpu(1)])
        assert (there.total(share), there.total(share, empty=True)) == (5, 8)

    def test_parts_made_beforehand_are_there_or_taken(self) -> None:
        parts = {"gpu-0-mig-3g40gb-9-0": "3g.40gb", "gpu-0-mig-1g10gb-19-4": "1g.10gb"}
        there = FlavorDevices([replace(gpu(0), mig_profiles=parts, allocated=("gpu-0-mig-3g40gb-9-0",))])
        assert [there.total(mig(profile)) for profile in ("3g.40gb", "1g.10gb")] == [0, 1]


class TestColocated:
    GPUS = (*node(4, "a", "c1"), *node(4, "b", "c2"), *node(4, "c", "c2"))

    @pytest.mark.parametrize(
        ("shape", "constraints", "spread", "most"),
        [
            (WHOLE, (), False, 4),
            (WHOLE, (), True, 12),
            (WHOLE, ("same_pcie_root",), False, 2),
            (WHOLE, ("same_gpu",), False, 1),
            (WHOLE, ("same_clique",), False, 4),
            (WHOLE, ("same_clique",), True, 8),
            (mig("1g.10gb"), ("same_gpu",), False, 7),
            (mig("1g.10gb"), ("same_pcie_root",), False, 14),
            (mig("1g.10gb"), ("distinct_gpus",), False, 4),
            (mig("3g.40gb"), ("same_pcie_root", "distinct_gpus"), False, 2),
        ],
    )
    def test_the_most_that_a_request_can_have(
        self, shape: SliceShape, constraints: tuple[str, ...], spread: bool, most: int
    ) -> None:
        assert cut(*self.GPUS).max_colocated(shape, constraints, spread=spread) == most

    @pytest.mark.parametrize("constraint", ["same_clique", "same_pcie_root"])
    def test_nothing_where_the_hardware_does_not_tell(self, constraint: str) -> None:
        untold = cut(*(replace(gpu, clique="", pcie_root="") for gpu in self.GPUS))
        assert untold.max_colocated(WHOLE, (constraint,), spread=False) == 0

    def test_what_is_taken_counts_now_and_not_ever(self) -> None:
        there = cut(replace(gpu(0), allocated=("gpu-0",)), gpu(1))
        assert there.max_colocated(WHOLE, (), spread=False) == 1
        assert there.max_colocated(WHOLE, (), spread=False, empty=True) == 2

    def test_the_clique_with_the_most_room_is_chosen(self) -> None:
        assert device_choice.best_clique(cut(*self.GPUS), WHOLE, 6, ("same_clique",), spread=True) == "c2"
        assert device_choice.best_clique(cut(*self.GPUS), WHOLE, 9, ("same_clique",), spread=True) == ""


class TestChoice:
    def chosen(
        self, there: FlavorDevices, profile: str, count: int = 1, *constraints: str, spread: bool = False
    ) -> list[str] | None:
        found = device_choice.choose_devices(there, profile, count, constraints, spread=spread)
        return None if found is None else [f"{gpu.node}/{gpu.name}" for gpu in found]

    def test_the_fuller_gpu_though_an_empty_one_comes_first(self) -> None:
        there = cut(gpu(0), gpu(1, ("1g.10gb", 0)))
        assert self.chosen(there, "1g.10gb") == ["h100-0/gpu-1"]

    def test_not_the_gpu_that_still_has_room_for_a_large_one(self) -> None:
        """On gpu-0 the scheduler would place it at 0, where it costs the 4g; on gpu-1 the 4g is lost already."""
        there = cut(gpu(0, ("3g.40gb", 4)), gpu(1, ("1g.10gb", 0)))
        assert self.chosen(there, "2g.20gb") == ["h100-0/gpu-1"]

    def test_slices_of_one_claim_are_on_one_node(self) -> None:
        there = cut(gpu(0, ("4g.40gb", 0), node="a"), gpu(0, node="b"))
        assert self.chosen(there, "3g.40gb", 2) == ["b/gpu-0"] * 2
        assert self.chosen(there, "3g.40gb", 2, spread=True) == ["a/gpu-0", "b/gpu-0"]

    def test_the_node_where_they_cost_least(self) -> None:
        there = cut(gpu(0, node="a"), gpu(0, ("1g.10gb", 0), node="b"))
        assert self.chosen(there, "1g.10gb", 3) == ["b/gpu-0"] * 3

    def test_each_on_a_gpu_of_its_own(self) -> None:
        there = cut(gpu(0), gpu(1, ("1g.10gb", 0)))
        assert self.chosen(there, "1g.10gb", 2, "distinct_gpus") == ["h100-0/gpu-1", "h100-0/gpu-0"]

    def test_nowhere(self) -> None:
        assert self.chosen(cut(gpu(0, ("4g.40gb", 0))), "4g.40gb") is None
        assert self.chosen(FlavorDevices([gpu(0)]), "1g.10gb") is None

    def test_what_is_under_way_stands_where_the_scheduler_will_put_it(self) -> None:
        pending = [("4g.40gb", "GPU-h100-0-0"), ("3g.40gb", "GPU-h100-0-0")]
        there = device_choice.with_pending(cut(gpu(0), gpu(1)), pending)
        assert there.total(mig("3g.40gb")) == 2
        assert self.chosen(there, "3g.40gb") == ["h100-0/gpu-1"]

    def test_a_large_fleet_is_no_matter_of_seconds(self) -> None:
        """64 nodes of 8 GPUs: equal nodes and GPUs are evaluated once."""
        there = cut(*(gpu for number in range(64) for gpu in node(8, f"n{number:02}")))
        assert self.chosen(there, "1g.10gb", 56) == [f"n00/gpu-{slot // 7}" for slot in range(56)]


def test_a_device_that_the_geometry_does_not_know_may_take_the_whole_gpu() -> None:
    """While a driver is upgraded node by node, some publish profiles that the others do not."""
    there = cut(gpu(0, ("1g.10gb", 0)), replace(gpu(1), allocated=("gpu-1-mig-1g24gb-19-0",)), gpu(2))
    assert there.total(mig("1g.10gb")) == 6 + 7


def test_whole_gpus_beside_cut_ones_are_those_without_parts() -> None:
    parts = {"gpu-0-mig-3g40gb-9-0": "3g.40gb", "gpu-0-mig-3g40gb-9-4": "3g.40gb"}
    there = FlavorDevices([replace(gpu(0), mig_profiles=parts), gpu(1), gpu(2)])
    assert (there.total(WHOLE), there.total(mig("3g.40gb"))) == (2, 2)


class TestBlockedGpus:
    """GPUs of a node on which pods outside the portal request the share of some GPUs."""

    def test_what_is_free_is_less_by_what_is_blocked(self) -> None:
        there = cut(*blocked("2.5", gpu(0), gpu(1), gpu(2), gpu(3)), *node(2, "h100-1"))
        assert there.total(WHOLE) == 1 + 2
        assert there.total(mig("3g.40gb")) == 3 + 4
        assert there.total(mig("1g.10gb")) == 12 + 14
        assert there.total(WHOLE, empty=True) == 6

    def test_what_is_held_has_its_share_already(self) -> None:
        held = (gpu(0, ("3g.40gb", 0)), replace(gpu(1), allocated=("gpu-1",)), gpu(2), gpu(3))
        assert cut(*blocked("1", *held)).total(WHOLE) == 1
        assert cut(*blocked("1", *held)).total(mig("3g.40gb")) == 3
        assert cut(*blocked("3", *held)).total(mig("1g.10gb")) == 0

    def test_on_one_node_no_more_fits_together_than_has_its_share(self) -> None:
        there = cut(*blocked("3", *node(4)), *node(2, "h100-1"))
        assert there.max_colocated(WHOLE, (), spread=False) == 2
        assert there.max_colocated(WHOLE, (), spread=True) == 3
        assert there.max_colocated(WHOLE, (), spread=False, empty=True) == 4

    def test_slices_are_steered_to_nodes_where_all_have_their_share(self) -> None:
        there = cut(*blocked("1.5", gpu(0, ("1g.10gb", 0)), gpu(1)), *node(1, "h100-1"))
        chosen = device_choice.choose_devices(there, "3g.40gb", 1, (), spread=False)
        assert chosen is not None
        assert {one.node for one in chosen} == {"h100-1"}
        assert device_choice.choose_devices(there, "3g.40gb", 3, (), spread=False) is None

    def test_gpus_that_are_not_cut_and_gpus_that_are_shared(self) -> None:
        assert FlavorDevices(blocked("1.25", *node(4))).total(WHOLE) == 2
        assert FlavorDevices(blocked("1.25", *node(2))).total(SliceShape("shared", replicas=4)) == 3

    def test_gpus_that_were_cut_beforehand(self) -> None:
        parts = {"gpu-0-mig-a": "3g.40gb", "gpu-0-mig-b": "1g.10gb"}
        (one,) = blocked("0.25", replace(gpu(0), mig_profiles=parts))
        sizes = {"3g.40gb": Fraction(1, 2), "1g.10gb": Fraction(1, 8)}
        there = FlavorDevices([one], part_of=lambda profile: sizes[profile])
        assert [there.total(mig(profile)) for profile in sizes] == [0, 1]


def blocked(gpus: str, *of_node: PhysicalGpu) -> list[PhysicalGpu]:
    return [replace(one, blocked_gpus=Fraction(gpus)) for one in of_node]


CONSTRAINTS = st.sets(st.sampled_from(["same_pcie_root", "distinct_gpus", "same_gpu"]))
SHAPES = st.sampled_from([WHOLE, mig("1g.10gb"), mig("2g.20gb")])
TAKEN = st.lists(st.sampled_from(["", "whole", "1g.10gb"]), min_size=1, max_size=8)


@given(nodes=st.lists(TAKEN, min_size=1, max_size=3), shape=SHAPES, count=st.integers(1, 12), constraints=CONSTRAINTS)
def test_slices_are_given_gpus_on_one_node_if_and_only_if_one_has_room(
    nodes: list[list[str]], shape: SliceShape, count: int, constraints: set[str]
) -> None:
    gpus = [
        replace(gpu(number, node=f"h100-{at}"), allocated=(f"gpu-{number}",))
        if taken == "whole"
        else gpu(number, *([(taken, 0)] if taken else []), node=f"h100-{at}")
        for at, each in enumerate(nodes)
        for number, taken in enumerate(each)
    ]
    fleet = cut(*gpus)
    chosen = device_choice.fill_devices(fleet, shape, count, constraints, ())
    assert (chosen is not None) == (fleet.max_colocated(shape, constraints, spread=False) >= count)
    for one, times in Counter(chosen or ()).items():
        assert times <= cut(one).total(shape)
    assert len({one.node for one in chosen or ()}) <= 1


def test_the_fullest_node_that_has_room_is_filled_and_gpus_to_be_avoided_are_not() -> None:
    fleet = cut(*node(8), *node(6, "h100-1"))
    chosen = device_choice.fill_devices(fleet, WHOLE, 5, (), ())
    assert [one.uuid for one in chosen or ()] == [f"GPU-h100-1-{number}" for number in range(5)]
    others = device_choice.fill_devices(fleet, WHOLE, 5, (), {"GPU-h100-1-0", "GPU-h100-1-1"})
    assert {one.node for one in others or ()} == {"h100-0"}
