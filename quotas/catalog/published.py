"""Computes the geometry of a GPU from what its DRA driver publishes: a device for every profile and placement. Pure.

The memory slices of a device are among its counters (`memory-slice-<n>`); its name ends in profile id and placement. So
products without a table are supported too. Source: dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/partitions.go.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from quotas.catalog.geometry import compute_slices
from quotas.catalog.mig_tables import Geometry, Profile
from quotas.catalog.quantities import mib
from quotas.catalog.types import DeviceFact

STORED_MAX = "most"
"""What `max_instances` is called in the catalog's rows."""
_MEMORY_SLICE = re.compile(r"memory-slice-(\d+)")


def memory_slices(device: DeviceFact) -> tuple[int, ...]:
    """Return the memory slices of its GPU that a device takes, in order; none for one without shared counters."""
    names = (name for counters in device.counters.values() for name in counters)
    return tuple(sorted(int(match[1]) for name in names if (match := _MEMORY_SLICE.fullmatch(name))))


def geometry(product: str, devices: Iterable[DeviceFact]) -> Geometry | None:
    """Return what one GPU can be divided into, from the devices published of it; None if it cannot be divided."""
    places: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    sample: dict[str, DeviceFact] = {}
    most_memory = 0
    for device in devices:
        taken = memory_slices(device)
        most_memory = max(most_memory, len(taken))
        if device.attributes.get("type") == "mig" and taken:
            name = str(device.attributes["profile"])
            places[name].append(taken)
            sample[name] = device
    if not places:
        return None
    profiles = tuple(sorted((_profile(name, places[name], sample[name]) for name in places), key=_by_size))
    return Geometry(product, max(p.compute for p in profiles), most_memory, profiles)


def _profile(name: str, places: list[tuple[int, ...]], device: DeviceFact) -> Profile:
    starts = tuple(sorted(taken[0] for taken in places))
    one = Profile(
        name=name,
        gi_id=int(device.name.rsplit("-", 2)[1]),
        compute=compute_slices(name),
        memory_mib=mib(device.capacity.get("memory", "0")),
        multiprocessors=int(device.capacity.get("multiprocessors", "0")),
        starts=starts,
        size=len(places[0]),
        max_instances=len(starts),
    )
    return Profile(**{**asdict(one), "max_instances": 1}) if one.has_media else one


def _by_size(profile: Profile) -> tuple[int, int, str]:
    return profile.compute, profile.size, profile.name


def document(found: Geometry | None) -> dict[str, Any]:
    """Return a geometry as JSON, for the catalog; empty for none."""
    if found is None:
        return {}
    fields = ("name", "gi_id", "compute", "memory_mib", "multiprocessors", "size")
    profiles = [
        {field: getattr(p, field) for field in fields} | {"starts": list(p.starts), STORED_MAX: p.max_instances}
        for p in found.profiles
    ]
    return {"name": found.name, "compute": found.compute, "memory": found.memory, "profiles": profiles}


def from_document(document: Mapping[str, Any]) -> Geometry | None:
    """Return the geometry of a JSON document."""
    if not document:
        return None
    profiles = tuple(_stored_profile(stored) for stored in document["profiles"])
    return Geometry(document["name"], document["compute"], document["memory"], profiles)


def _stored_profile(stored: Mapping[str, Any]) -> Profile:
    values = {**stored, "starts": tuple(stored["starts"])}
    return Profile(max_instances=values.pop(STORED_MAX), **values)
