"""The devices of a card that the DRA driver divides on demand: the whole card, and every MIG profile at every
placement.

A device consumes from its card's counters what it would occupy, so the scheduler never allocates two that overlap.
Source: kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/{partitions,mig}.go.
"""

import re
from typing import Any

from deploy.local.fleet import capacities
from deploy.local.fleet.capacities import Capacity
from deploy.local.fleet.slots import Slot
from quotas.catalog.layouts import device_label
from quotas.catalog.mig_tables import Geometry, Profile

Device = dict[str, Any]
Counters = dict[str, dict[str, str]]


def devices(geometry: Geometry, slot: Slot, common: dict[str, Any]) -> list[Device]:
    """Return the whole card and all its possible parts. `common` are the attributes of all of them."""
    whole = {
        "name": slot.name,
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": slot.uuid}} | common,
        "capacity": capacities.of_partitionable_card(geometry),
        "consumesCounters": [{"counterSet": slot.counter_set, "counters": counters_of_card(geometry)}],
    }
    return [whole, *(_partition(slot, p, start, common) for p in geometry.profiles for start in p.starts)]


def _partition(slot: Slot, profile: Profile, start: int, common: dict[str, Any]) -> Device:
    memory_slices = range(start, start + profile.size)
    return {
        "name": device_name(slot, profile, start),
        "attributes": mig_attributes(slot, profile) | common,
        "capacity": capacities.of_profile(profile),
        "consumesCounters": [
            {"counterSet": slot.counter_set, "counters": _counters(capacities.of_profile(profile), memory_slices)}
        ],
    }


def counters_of_card(geometry: Geometry) -> Counters:
    return _counters(capacities.of_partitionable_card(geometry), range(geometry.memory))


def _counters(capacity: Capacity, memory_slices: range) -> Counters:
    """Return the counters of a device: `copyEngines` becomes `copy-engines`; each memory slice is a counter of its
    own.
    """
    named = {re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", name).lower(): amount for name, amount in capacity.items()}
    return named | {f"memory-slice-{index}": {"value": "1"} for index in memory_slices}


def device_name(slot: Slot, profile: Profile, start: int) -> str:
    """Return the name of a device, for example `gpu-0-mig-1g10gb-me-20-3`."""
    return f"{slot.name}-mig-{device_label(profile.name)}-{profile.gi_id}-{start}"


def mig_attributes(slot: Slot, profile: Profile) -> dict[str, Any]:
    return {
        "type": {"string": "mig"},
        "parentUUID": {"string": slot.uuid},
        "profile": {"string": profile.name},
    }
