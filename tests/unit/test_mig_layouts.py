"""Layouts of MIG GPUs: all valid ones, equal to a brute force; what still fits, its cost, and the best GPU."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import TABLES, Geometry, geometry_of
from tests.support.mig_layouts import is_valid

H100 = TABLES["H100-80GB"]
GPUS = pytest.mark.parametrize("geometry", TABLES.values(), ids=TABLES)


def at(profile: str, start: int, geometry: Geometry = H100) -> Placement:
    return Placement(profile, start, geometry.profile(profile).size)


def by_brute_force(geometry: Geometry) -> set[tuple[tuple[str, int], ...]]:
    """Return all multisets of profiles that fit together: from left to right each slice stays free or starts one."""
    beginning = {start: [p for p in geometry.profiles if start in p.starts] for start in range(geometry.memory)}
    found: set[tuple[tuple[str, int], ...]] = set()

    def fill(slice_: int, names: tuple[str, ...]) -> None:
        if slice_ >= geometry.memory:
            counts = Counter(names)
            media = sum(n for name, n in counts.items() if "+me" in name)
            if media <= 1 and all(n <= geometry.profile(name).max_instances for name, n in counts.items()):
                found.add(tuple(sorted(counts.items())))
            return
        fill(slice_ + 1, names)
        for profile in beginning[slice_]:
            if slice_ + profile.size <= geometry.memory:
                fill(slice_ + profile.size, (*names, profile.name))

    fill(0, ())
    return found - {()}


@GPUS
def test_every_layout_is_found_and_no_other(geometry: Geometry) -> None:
    assert {tuple(sorted(layout.items())) for layout in layouts.layouts(geometry)} == by_brute_force(geometry)


@GPUS
def test_a_profile_alone_fits_as_often_as_its_table_says(geometry: Geometry) -> None:
    """The counts of `nvidia-smi mig -lgip`: 7, 4, 3, 2 and 1 of the plain profiles."""
    assert layouts.remaining(geometry, []) == {p.name: p.max_instances for p in geometry.profiles}


@pytest.mark.parametrize(
    "layout",
    [
        {"1g.10gb": 7},
        {"2g.20gb": 3, "1g.10gb": 1},
        {"4g.40gb": 1, "3g.40gb": 1},
        {"3g.40gb": 2},
        {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1},
        {"4g.40gb": 1, "1g.10gb": 3},
        {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2},
        {"1g.20gb": 4},
    ],
    ids=str,
)
def test_the_layouts_of_nvidias_guide_are_valid(layout: dict[str, int]) -> None:
    assert layout in layouts.layouts(H100)


@pytest.mark.parametrize(
    "layout",
    [{"4g.40gb": 2}, {"4g.40gb": 1, "3g.40gb": 1, "1g.10gb": 1}, {"1g.10gb": 8}, {"7g.80gb": 1, "1g.10gb": 1}],
    ids=str,
)
def test_what_is_too_much_for_a_gpu_is_no_layout(layout: dict[str, int]) -> None:
    assert layout not in layouts.layouts(H100)


@pytest.mark.parametrize(
    ("there", "more"),
    [
        ([("3g.40gb", 0)], ("4g.40gb", 0)),
        ([], ("2g.20gb", 1)),
        ([("1g.10gb+me", 0)], ("1g.10gb+me", 1)),
    ],
    ids=["memory slice taken", "no place to begin", "more than a GPU has"],
)
def test_what_cannot_be_added_does_not_fit(there: list[tuple[str, int]], more: tuple[str, int]) -> None:
    assert at(*more) not in layouts.fitting(H100, [at(*one) for one in there], more[0])


def test_a_gpu_has_one_set_of_media_engines() -> None:
    a30 = TABLES["A30"]
    assert layouts.fitting(a30, [at("1g.6gb+me", 0, a30)], "2g.12gb+me") == ()
    assert layouts.fitting(a30, [at("1g.6gb", 0, a30)], "2g.12gb+me") == (at("2g.12gb+me", 2, a30),)


def test_small_slices_in_both_halves_block_every_large_one() -> None:
    """1g at 0 and at 4 leave no placement for 3g, 4g and 7g."""
    left = layouts.remaining(H100, [at("1g.10gb", 0), at("1g.10gb", 4)])
    assert (left["3g.40gb"], left["4g.40gb"], left["7g.80gb"]) == (0, 0, 0)


def test_one_slice_costs_what_can_no_longer_stand() -> None:
    cost = layouts.blocks(H100, [], at("1g.10gb", 0))
    assert {name: n for name, n in cost.items() if n} == {
        "1g.10gb": 1, "1g.20gb": 1, "2g.20gb": 1, "3g.40gb": 1, "4g.40gb": 1, "7g.80gb": 1,
    }  # fmt: skip


def test_by_hand_a_small_slice_goes_where_nothing_large_can_begin() -> None:
    assert layouts.best_placement(H100, [], "1g.10gb") == at("1g.10gb", 6)


@GPUS
def test_by_hand_and_largest_first_every_layout_is_reached(geometry: Geometry) -> None:
    for layout in layouts.layouts(geometry):
        largest_first = sorted(layout, key=lambda p: (-geometry.profile(p).size, -geometry.profile(p).compute, p))
        placed: list[Placement] = []
        for profile in itertools.chain(*([name] * layout[name] for name in largest_first)):
            place = layouts.best_placement(geometry, placed, profile)
            assert place is not None, layout
            placed.append(place)
        assert is_valid(geometry, placed)


def test_a_small_slice_joins_the_gpu_that_is_broken_already() -> None:
    gpus = {"a": [], "b": [at("1g.10gb", 0)], "c": [at("3g.40gb", 0), at("1g.10gb", 4)]}
    assert layouts.best_gpu(H100, gpus, "1g.10gb") == "c"


def test_a_slice_that_fits_nowhere_has_no_gpu() -> None:
    assert layouts.best_gpu(H100, {"a": [at("7g.80gb", 0)]}, "1g.10gb") is None


@pytest.mark.parametrize(
    ("device", "gpu", "placement"),
    [
        ("gpu-3", "gpu-3", None),
        ("gpu-0-mig-1g20gb-15-6", "gpu-0", at("1g.20gb", 6)),
        ("gpu-0-mig-1g10gb-me-20-3", "gpu-0", at("1g.10gb+me", 3)),
    ],
)
def test_a_devices_name_tells_its_placement(device: str, gpu: str, placement: Placement | None) -> None:
    assert layouts.placement_of_device(H100, device) == (gpu, placement)


@pytest.mark.parametrize(
    ("product", "memory_mib", "table"),
    [
        ("NVIDIA-H100-80GB-HBM3", 81559, "H100-80GB"),
        ("NVIDIA H100 NVL", 95830, "H100-94GB"),
        ("NVIDIA-A100-SXM4-40GB", 40960, "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9856, "A100-80GB"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "RTX-PRO-6000-96GB"),
        ("NVIDIA-L40S", 46068, ""),
    ],
)
def test_a_product_is_known_by_its_name(product: str, memory_mib: int, table: str) -> None:
    found = geometry_of(product, memory_mib)
    assert (found.name if found else "") == table


@st.composite
def occupations(draw: st.DrawFn, geometry: Geometry = H100) -> list[Placement]:
    """Return possible occupations of a GPU after requests and releases: subsets of a random filling."""
    order = draw(
        st.permutations(list(itertools.chain(*(layouts.placements(geometry, p.name) for p in geometry.profiles))))
    )
    placed: list[Placement] = []
    for one in order:
        if is_valid(geometry, [*placed, one]):
            placed.append(one)
    return draw(st.lists(st.sampled_from(placed), unique=True))


PROFILES = st.sampled_from([p.name for p in H100.profiles])


@given(occupations(), PROFILES)
def test_what_fits_can_stand_there(occupied: list[Placement], profile: str) -> None:
    every = layouts.placements(H100, profile)
    fitting = layouts.fitting(H100, occupied, profile)
    assert [p for p in every if is_valid(H100, [*occupied, p])] == list(fitting)


@given(occupations(), PROFILES)
def test_the_scheduler_reaches_all_the_room_there_is(occupied: list[Placement], profile: str) -> None:
    placed = list(occupied)
    while (place := layouts.first_fit(H100, placed, profile)) is not None:
        placed.append(place)
    assert len(placed) - len(occupied) == layouts.remaining(H100, occupied)[profile]


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), occupations(), min_size=1, max_size=4), PROFILES)
def test_no_gpu_would_have_cost_less(gpus: dict[str, list[Placement]], profile: str) -> None:
    chosen = layouts.best_gpu(H100, gpus, profile)
    costs = {
        key: layouts.loss(H100, occupied, place)
        for key, occupied in gpus.items()
        if (place := layouts.first_fit(H100, occupied, profile))
    }
    assert (chosen is None) == (not costs)
    if chosen is not None:
        assert costs[chosen] == min(costs.values())


@given(occupations(), PROFILES)
def test_no_placement_would_have_cost_less(occupied: list[Placement], profile: str) -> None:
    chosen = layouts.best_placement(H100, occupied, profile)
    costs = {place: layouts.loss(H100, occupied, place) for place in layouts.fitting(H100, occupied, profile)}
    assert (chosen is None) == (not costs)
    if chosen is not None:
        assert costs[chosen] == min(costs.values())


@given(occupations(), PROFILES)
def test_what_a_placement_blocks_is_what_fits_no_more(occupied: list[Placement], profile: str) -> None:
    for place in layouts.fitting(H100, occupied, profile):
        before, after = layouts.remaining(H100, occupied), layouts.remaining(H100, [*occupied, place])
        fewer = layouts.blocks(H100, occupied, place)
        assert {name: after[name] + fewer[name] for name in before} == before
        assert fewer[profile] >= 1
        assert min(fewer.values()) >= 0


@pytest.mark.parametrize(
    ("layout", "is_filled"),
    [
        ({"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}, True),
        ({"2g.20gb": 3}, True),
        ({"4g.40gb": 1}, True),
        ({"2g.20gb": 2}, False),
        ({"3g.40gb": 1}, False),
        ({"4g.40gb": 2}, False),
        ({"5g.50gb": 1}, False),
        ({}, False),
    ],
)
def test_a_layout_is_filled_if_none_of_its_own_profiles_can_be_added(layout: dict[str, int], is_filled: bool) -> None:
    assert layouts.is_filled(H100, layout) is is_filled


@GPUS
def test_a_profile_alone_is_filled_as_often_as_its_table_says(geometry: Geometry) -> None:
    for profile in geometry.profiles:
        filled = [n for n in range(1, 9) if layouts.is_filled(geometry, {profile.name: n})]
        assert filled == [profile.max_instances]
