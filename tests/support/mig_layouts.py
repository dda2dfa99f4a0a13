"""Validity of MIG layouts, implemented independently of the code under test, and which of them are full."""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import combinations

from quotas.catalog.layouts import Placement, layouts
from quotas.catalog.mig_tables import Geometry


def is_valid(geometry: Geometry, placed: Collection[Placement]) -> bool:
    """Return whether each instance starts where its profile may, none overlap, and no profile or media engine is
    exceeded.
    """
    counts = Counter(one.profile for one in placed)
    return (
        all(one.start in geometry.profile(one.profile).starts for one in placed)
        and not any(set(one.slices) & set(other.slices) for one, other in combinations(placed, 2))
        and all(number <= geometry.profile(name).max_instances for name, number in counts.items())
        and sum(geometry.profile(one.profile).has_media for one in placed) <= 1
    )


def maximal_layouts(geometry: Geometry) -> tuple[Mapping[str, int], ...]:
    """Return the layouts to which nothing can be added, however they are placed."""
    every = [Counter(layout) for layout in layouts(geometry)]
    return tuple(dict(layout) for layout in every if not any(layout < other for other in every))
