"""Devices of a card that the DRA driver does not divide: the whole card, or the MIG instances on it.

Source: kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/{deviceinfo,consumable_shares}.go.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from deploy.local.fleet import capacities
from deploy.local.fleet.partitions import Device, device_name, mig_attributes
from deploy.local.fleet.slots import Slot
from quotas.catalog.layouts import Placement, best_placement
from quotas.catalog.mig_tables import Geometry

INSTANCE_UUIDS = uuid.UUID("b4a0c5d2-7d55-5b1f-8a46-2f6f0d9f3c77")


def whole_card(slot: Slot, memory_mib: int, shares: int, common: dict[str, Any]) -> Device:
    """Return the device of a whole card; with `shares`, several claims may hold it, each with a number of shares."""
    device: Device = {
        "name": slot.name,
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": slot.uuid}} | common,
        "capacity": capacities.of_card(memory_mib, shares),
    }
    return device | {"allowMultipleAllocations": True} if shares else device


def instances(geometry: Geometry, layout: Mapping[str, int], slot: Slot, common: dict[str, Any]) -> list[Device]:
    """Return one device per MIG instance; each memory slice it occupies is a capacity of its own."""
    return [_instance(geometry, placement, slot, common) for placement in placed(geometry, layout)]


def placed(geometry: Geometry, layout: Mapping[str, int]) -> list[Placement]:
    """Return the placements of the instances, largest first, each where it blocks least; raise ValueError if they do
    not fit.
    """
    profiles = sorted((geometry.profile(name) for name in layout), key=lambda p: (-p.size, -p.compute, p.name))
    occupied: list[Placement] = []
    for profile in profiles:
        for _ in range(layout[profile.name]):
            placement = best_placement(geometry, occupied, profile.name)
            if placement is None:
                raise ValueError(f"{geometry.name} cannot be cut into {dict(layout)}")
            occupied.append(placement)
    return occupied


def _instance(geometry: Geometry, placement: Placement, slot: Slot, common: dict[str, Any]) -> Device:
    profile = geometry.profile(placement.profile)
    name = device_name(slot, profile, placement.start)
    slices = {f"memorySlice{index}": {"value": "1"} for index in placement.slices}
    unique = {"uuid": {"string": f"MIG-{uuid.uuid5(INSTANCE_UUIDS, f'{slot.uuid}/{name}')}"}}
    return {
        "name": name,
        "attributes": mig_attributes(slot, profile) | unique | common,
        "capacity": capacities.of_profile(profile) | slices,
    }
