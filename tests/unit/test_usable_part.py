"""How much of a GPU offered MIG slices can still take, on an H100 with 7 compute and 8 memory slices."""

from fractions import Fraction

import pytest

from quotas.catalog import layouts, usable_part
from quotas.catalog.geometry import Slices, gpu_share
from quotas.catalog.mig_tables import TABLES

H100 = TABLES["H100-80GB"]
PARTS = {one.name: gpu_share(Slices(one.compute, one.size), Slices(H100.compute, H100.memory)) for one in H100.profiles}


@pytest.mark.parametrize(
    ("occupied", "offered", "most"),
    [
        ([], ["1g.10gb"], Fraction(1)),
        ([], ["3g.40gb"], Fraction(1)),
        ([], ["2g.20gb"], Fraction(6, 7)),
        ([], ["3g.40gb", "4g.40gb"], Fraction(15, 14)),
        (["gpu-0-mig-3g40gb-9-0"], ["4g.40gb"], Fraction(0)),
        (["gpu-0-mig-3g40gb-9-4"], ["4g.40gb"], Fraction(4, 7)),
        (["gpu-0-mig-1g10gb-19-6"], ["3g.40gb"], Fraction(1, 2)),
        (["gpu-0-mig-1g10gb-19-0"], ["7g.80gb"], Fraction(0)),
        ([], [], Fraction(0)),
        ([], ["9g.99gb"], Fraction(0)),
    ],
)
def test_offered_slices_take_the_most_that_fits_together(occupied: list[str], offered: list[str], most: Fraction):
    placements = [place for name in occupied if (place := layouts.known_placement(H100, name))]
    assert len(placements) == len(occupied)
    assert usable_part.of_gpu(H100, placements, {name: PARTS.get(name, Fraction(1)) for name in offered}) == most


@pytest.mark.parametrize(
    ("occupied", "offered", "profile"),
    [
        (["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-2g20gb-14-0"], ["3g.40gb"], "1g.10gb"),
        (["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-2g20gb-14-0"], ["3g.40gb", "1g.10gb"], ""),
        (["gpu-0-mig-1g10gb-19-0"], ["7g.80gb"], "1g.10gb"),
        (["gpu-0-mig-7g80gb-0-0"], ["1g.10gb"], ""),
    ],
)
def test_the_profile_to_offer_is_the_smallest_with_which_most_could_be_taken(
    occupied: list[str], offered: list[str], profile: str
):
    placements = [place for name in occupied if (place := layouts.known_placement(H100, name))]
    assert usable_part.profile_to_offer(H100, placements, {name: PARTS[name] for name in offered}) == profile
