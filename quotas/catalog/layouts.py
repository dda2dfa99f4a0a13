"""Placement of MIG instances on a GPU: valid layouts, what still fits, and what a placement costs. Pure.

A GPU's memory slices are numbered from 0. An instance takes some of them, starting where its profile may start; a set
of instances is valid if no two take the same slice, no profile has more than its `max_instances`, and at most one has
the media engines. A GPU's occupation is a set of placements.

Sources: NVIDIA MIG user guide, "MIG device placement"; NVML, nvmlDeviceGetGpuInstancePossiblePlacements.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

from quotas.catalog.mig_tables import Geometry, Profile

Key = TypeVar("Key", bound=str | tuple[str, ...])


@dataclass(frozen=True, order=True)
class Placement:
    """An instance of a profile on the memory slices `start` to `start + size - 1`."""

    profile: str
    start: int
    size: int

    @property
    def slices(self) -> range:
        return range(self.start, self.start + self.size)

    def overlaps(self, other: "Placement") -> bool:
        return self.start < other.start + other.size and other.start < self.start + self.size


Occupied = Collection[Placement]


@cache
def placements(geometry: Geometry, profile: str) -> tuple[Placement, ...]:
    """Return where an instance may be placed, in the scheduler's order: that of the published devices' names."""
    one = geometry.profile(profile)
    return tuple(Placement(one.name, start, one.size) for start in sorted(one.starts, key=str))


def fitting(geometry: Geometry, occupied: Occupied, profile: str) -> tuple[Placement, ...]:
    """Return every placement of the profile that is still free."""
    full = sum(other.profile == profile for other in occupied) >= geometry.profile(profile).max_instances
    if full or _media_engine_user(geometry, occupied, profile):
        return ()
    return tuple(p for p in placements(geometry, profile) if not any(p.overlaps(other) for other in occupied))


def _media_engine_user(geometry: Geometry, occupied: Occupied, profile: str) -> str:
    """Return the instance that has the media engines which the profile needs, or nothing."""
    if not geometry.profile(profile).has_media:
        return ""
    return next((other.profile for other in occupied if geometry.profile(other.profile).has_media), "")


def first_fit(geometry: Geometry, occupied: Occupied, profile: str) -> Placement | None:
    """Return the scheduler's choice on this GPU: the first published placement that is free."""
    return next(iter(fitting(geometry, occupied, profile)), None)


def remaining(geometry: Geometry, occupied: Occupied) -> dict[str, int]:
    """Return how many more of each profile fit, each counted alone. Placements of one profile never overlap
    each other.
    """
    there = Counter(p.profile for p in occupied)
    return {
        one.name: min(len(fitting(geometry, occupied, one.name)), one.max_instances - there[one.name])
        for one in geometry.profiles
    }


def blocks(geometry: Geometry, occupied: Occupied, placement: Placement) -> dict[str, int]:
    """Return how many fewer of each profile fit after the placement."""
    before, after = remaining(geometry, occupied), remaining(geometry, [*occupied, placement])
    return {name: before[name] - after[name] for name in before}


def loss(geometry: Geometry, occupied: Occupied, placement: Placement) -> tuple[int, ...]:
    """Return what a placement costs, the largest profile first: the smaller, the better it packs."""
    fewer = blocks(geometry, occupied, placement)
    return tuple(fewer[one.name] for one in _largest_first(geometry))


def best_placement(geometry: Geometry, occupied: Occupied, profile: str) -> Placement | None:
    """Return the placement of one more instance that costs least, for layouts planned by hand."""
    choices = fitting(geometry, occupied, profile)
    return min(choices, key=lambda p: (loss(geometry, occupied, p), -p.start), default=None)


def best_gpu(geometry: Geometry, gpus: Mapping[Key, Occupied], profile: str) -> Key | None:
    """Return the GPU on which one more instance costs least, given that the scheduler chooses the placement on it.

    GPUs with equal losses: the fuller one, then the first by name. None if it fits nowhere.
    """
    costs = [
        (*cost, key)
        for key, occupied in gpus.items()
        if (cost := _cost_of_next(geometry, frozenset(occupied), profile)) is not None
    ]
    return min(costs)[2] if costs else None


@lru_cache(maxsize=10_000)
def _cost_of_next(
    geometry: Geometry, occupied: frozenset[Placement], profile: str
) -> tuple[tuple[int, ...], int] | None:
    """Return what the scheduler's next placement on such a GPU costs, then minus the GPU's fullness; None if it is
    full.

    Cached, since a fleet has many GPUs and few states that they are in.
    """
    place = first_fit(geometry, occupied, profile)
    return (loss(geometry, occupied, place), -sum(p.size for p in occupied)) if place else None


@cache
def layouts(geometry: Geometry) -> tuple[Mapping[str, int], ...]:
    """Return every valid layout of a GPU as {profile: instances}, each multiset once, without the empty one."""
    seen: set[tuple[int, ...]] = set()
    names = [one.name for one in geometry.profiles]
    options = [placements(geometry, name) for name in names]
    media = [index for index, one in enumerate(geometry.profiles) if one.has_media]
    visited: set[tuple[int, tuple[int, ...]]] = set()

    def extend(taken: int, counts: tuple[int, ...]) -> None:
        if (taken, counts) in visited:
            return
        visited.add((taken, counts))
        seen.add(counts)
        for index, one in enumerate(geometry.profiles):
            if counts[index] == one.max_instances or (one.has_media and any(counts[i] for i in media)):
                continue
            for place in options[index]:
                if not taken & (bits := _bits(place)):
                    extend(taken | bits, (*counts[:index], counts[index] + 1, *counts[index + 1 :]))

    extend(0, (0,) * len(names))
    found = sorted((counts for counts in seen if any(counts)), reverse=True)
    return tuple({name: n for name, n in zip(names, counts, strict=True) if n} for counts in found)


def is_filled(geometry: Geometry, layout: Mapping[str, int]) -> bool:
    """Return whether a layout is valid and none of its own profiles can be added, as in those of NVIDIA's MIG
    manager: three `2g.20gb` are filled, although a `1g.10gb` fits beside them.
    """
    every = layouts(geometry)
    return layout in every and not any({**layout, name: number + 1} in every for name, number in layout.items())


def placement_of_device(geometry: Geometry, name: str) -> tuple[str, Placement | None]:
    """Return GPU and placement of a DRA device's name: `gpu-0-mig-1g10gb-19-3`; the whole GPU has no placement.

    Source: dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/mig.go, canonical names. Raises ValueError for another form.
    """
    gpu, mig, rest = name.partition("-mig-")
    if not mig:
        return gpu, None
    label, gi_id, start = rest.rsplit("-", 2)
    one = next((p for p in geometry.profiles if p.gi_id == int(gi_id) and device_label(p.name) == label), None)
    if one is None:
        raise ValueError(f"{name} is no MIG device of {geometry.name}")
    return gpu, Placement(one.name, int(start), one.size)


def known_placement(geometry: Geometry, device: str) -> Placement | None:
    """Return the placement of a DRA device; None for the whole GPU, and for one that the geometry does not know.

    While a driver is upgraded node by node, some publish profiles that the others do not; these may take all of a GPU.
    """
    try:
        return placement_of_device(geometry, device)[1]
    except ValueError:
        return None


def parent_gpu(device: str) -> str:
    """Return the name of the GPU that a DRA device belongs to: its own name, or that of a MIG device's parent."""
    return device.partition("-mig-")[0]


def device_label(profile: str) -> str:
    """Return a profile as in a device's name: without dots, and with `+` as a hyphen, since it is a DNS label."""
    return profile.replace(".", "").replace("+", "-")


def label_of_device(name: str) -> str:
    """Return the profile as a DRA device's name has it; "" for the whole GPU, and for a name of another form."""
    parts = name.partition("-mig-")[2].rsplit("-", 2)
    return parts[0] if len(parts) == 3 else ""


def _largest_first(geometry: Geometry) -> list[Profile]:
    return sorted(geometry.profiles, key=lambda one: (-one.size, -one.compute, one.name))


def _bits(placement: Placement) -> int:
    return sum(1 << index for index in placement.slices)
