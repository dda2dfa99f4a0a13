"""The tables of MIG GPUs: consistent in themselves, and with what the simulated fleet publishes."""

import re

import pytest

from quotas.catalog.mig_tables import TABLES, Geometry

GPUS = pytest.mark.parametrize("geometry", TABLES.values(), ids=TABLES)
WITH_MEDIA = re.compile(r".*\+me(\.all)?")


@GPUS
def test_names_say_the_compute_slices(geometry: Geometry) -> None:
    assert all(one.name.startswith(f"{one.compute}g.") for one in geometry.profiles)


@GPUS
def test_memory_fits_what_the_name_rounds(geometry: Geometry) -> None:
    """A name has GB of the GPU's label; the instance has a little less in MiB."""
    for one in geometry.profiles:
        named = int(re.split(r"[.g]", one.name)[2]) * 1024
        assert 0.85 * named < one.memory_mib <= 1.02 * named, one.name


@GPUS
def test_every_start_leaves_room_for_the_instance(geometry: Geometry) -> None:
    for one in geometry.profiles:
        assert all(0 <= start <= geometry.memory - one.size for start in one.starts), one.name


@GPUS
def test_as_many_fit_as_there_are_places_but_one_with_media(geometry: Geometry) -> None:
    for one in geometry.profiles:
        assert one.max_instances == (1 if WITH_MEDIA.fullmatch(one.name) else len(one.starts)), one.name


@GPUS
def test_the_largest_takes_the_whole_gpu(geometry: Geometry) -> None:
    largest = max(geometry.profiles, key=lambda one: one.size)
    assert (largest.compute, largest.size) == (geometry.compute, geometry.memory)


@GPUS
def test_each_has_a_source_and_what_is_scaled_is_named(geometry: Geometry) -> None:
    assert geometry.source
    assert set(geometry.estimated) <= {one.name for one in geometry.profiles}


def test_gpus_of_seven_are_cut_alike() -> None:
    shapes = {
        tuple((one.gi_id, one.compute, one.starts, one.size, one.max_instances) for one in geometry.profiles)
        for geometry in TABLES.values()
        if geometry.compute == 7
    }
    assert len(shapes) == 1


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"A30 has no MIG profile 3g.18gb; it has 1g.6gb, 1g.6gb\+me, 2g.12gb"):
        TABLES["A30"].profile("3g.18gb")


@pytest.mark.parametrize(
    ("profile", "resource"), [("1g.10gb", "nvidia.com/mig-1g.10gb"), ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me")]
)
def test_the_device_plugin_writes_a_plus_as_a_dot(profile: str, resource: str) -> None:
    assert TABLES["H100-80GB"].profile(profile).resource == resource
