"""The ResourceSlices of a DRA node, as NVIDIA's driver publishes them on Kubernetes 1.35 and later.

One pool per node. With dynamic MIG its first slice has the counters (one set per card), and one slice per card has all
devices of that card. Without it, one slice has all devices of the node.
Source: kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/driver.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from deploy.local.fleet import fixed_devices, partitions
from deploy.local.fleet.partitions import Device
from deploy.local.fleet.slots import Slot, attributes, slots
from deploy.local.fleet.spec import Fleet, Kind
from quotas.catalog.mig_tables import TABLES
from quotas.catalog.nvidia import DRA_DRIVER

Taint = dict[str, str]
Specs = dict[str, dict[str, Any]]


def pool(fleet: Fleet, kind: Kind, node: str, taints: Mapping[str, Sequence[Taint]]) -> Specs:
    """Return specs by slice name, without the pool's generation, which only the publisher knows.

    `taints` are those of this node by device name; one on `gpu-<n>` covers the card and all that is cut from
    it, as the driver's health monitor does it.
    """
    devices = {slot: _devices(fleet, kind, slot, taints) for slot in slots(kind, node)}
    if kind.mig and kind.mig.strategy == "dynamic":
        slices = _one_per_card(kind, node, devices)
    else:
        slices = {f"{node}-{DRA_DRIVER}-devices": {"devices": [d for of_card in devices.values() for d in of_card]}}
    shared = {"driver": DRA_DRIVER, "nodeName": node, "pool": {"name": node, "resourceSliceCount": len(slices)}}
    return {name: shared | content for name, content in slices.items()}


def _one_per_card(kind: Kind, node: str, devices: Mapping[Slot, Sequence[Device]]) -> Specs:
    counters = partitions.counters_of_card(TABLES[kind.card.mig_table])
    sets = [{"name": slot.counter_set, "counters": counters} for slot in devices]
    return {
        f"{node}-{DRA_DRIVER}-counters": {"sharedCounters": sets},
        **{f"{node}-{DRA_DRIVER}-{slot.name}": {"devices": of_card} for slot, of_card in devices.items()},
    }


def _devices(fleet: Fleet, kind: Kind, slot: Slot, taints: Mapping[str, Sequence[Taint]]) -> list[Device]:
    """Return the devices of one card, sorted by name: the scheduler takes the first that fits."""
    common = attributes(fleet, kind.card, slot)
    if kind.mig is None or (kind.mig.strategy == "static" and kind.mig.layout is None):
        devices = [fixed_devices.whole_card(slot, kind.card.memory_mib, kind.shares, common)]
    elif kind.mig.strategy == "static":
        devices = fixed_devices.instances(TABLES[kind.card.mig_table], kind.mig.layout or {}, slot, common)
    else:
        devices = partitions.devices(TABLES[kind.card.mig_table], slot, common)
    tainted = (_tainted(device, slot, taints) for device in devices)
    published = (device for device in tainted if fleet.has_device_taints or "taints" not in device)
    return sorted(published, key=lambda device: str(device["name"]))


def _tainted(device: Device, slot: Slot, taints: Mapping[str, Sequence[Taint]]) -> Device:
    found = [
        *taints.get(slot.name, ()),
        *(taints.get(device["name"], ()) if device["name"] != slot.name else ()),
    ]
    return device | {"taints": found} if found else device
