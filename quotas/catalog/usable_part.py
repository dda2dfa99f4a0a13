"""How much of a GPU offered MIG slices can still take together. Pure.

What is free and not in that is stranded: a layout leaves memory or compute slices that no offered profile fits.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import lru_cache

from quotas.catalog import layouts
from quotas.catalog.geometry import Slices, gpu_share
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry


def of_gpu(geometry: Geometry, occupied: Collection[Placement], offered: Mapping[str, Fraction]) -> Fraction:
    """Return the largest sum of the parts of offered profiles that fit together beside ``occupied``.

    ``offered`` is {profile: part of a GPU that one is}. The sum may be more than what is free (4g and 3g are 15/14).
    """
    known = tuple((one.name, offered[one.name]) for one in geometry.profiles if one.name in offered)
    return _most(geometry, frozenset(occupied), known)


def profile_to_offer(geometry: Geometry, occupied: Collection[Placement], offered: Mapping[str, Fraction]) -> str:
    """Return the profile with which most could be taken beside ``occupied`` if it were offered too, the smallest of
    several; "" if no other profile fits.
    """
    whole = Slices(geometry.compute, geometry.memory)
    most, found = of_gpu(geometry, occupied, offered), ""
    for one in sorted(geometry.profiles, key=lambda one: (one.size, one.compute, one.name)):
        if one.name not in offered:
            part = gpu_share(Slices(one.compute, one.size), whole)
            usable = of_gpu(geometry, occupied, {**offered, one.name: part})
            if usable > most:
                most, found = usable, one.name
    return found


@lru_cache(maxsize=10_000)
def _most(geometry: Geometry, occupied: frozenset[Placement], offered: tuple[tuple[str, Fraction], ...]) -> Fraction:
    """Try each offered profile wherever it fits. Cached, since a fleet has many GPUs in few states."""
    return max(
        (
            part + _most(geometry, occupied | {place}, offered)
            for name, part in offered
            for place in layouts.fitting(geometry, occupied, name)
        ),
        default=Fraction(0),
    )
