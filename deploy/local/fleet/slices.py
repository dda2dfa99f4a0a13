"""The ResourceSlices of a DRA node, as NVIDIA's driver publishes them with DynamicMIG on Kubernetes 1.35+.

One pool per node. Its first slice holds the counters (one set per card), then one slice per card holds the
whole card and every MIG profile at every placement as devices. A device draws from its card's counters what
it would occupy, so the scheduler can never hand out two devices that overlap.
Source: kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/{driver,partitions,mig,deviceinfo}.go.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.local.fleet import geometry
from deploy.local.fleet.quantities import of_mib
from deploy.local.fleet.spec import Card, Fleet, Kind

DRIVER = "gpu.nvidia.com"
CARD_UUIDS = uuid.UUID("5d3f7a0e-2f0c-5f0b-9a53-6b1c1f0e7a11")

Taint = dict[str, str]


@dataclass(frozen=True)
class Slot:
    """One card in its place: the minor number names its devices, the rest is where it sits in the node."""

    minor: int
    uuid: str
    pci_bus_id: str
    pcie_root: str
    numa_node: int

    @property
    def name(self) -> str:
        return f"gpu-{self.minor}"

    @property
    def counter_set(self) -> str:
        return f"{self.name}-counter-set"


def slots(kind: Kind, node: str) -> list[Slot]:
    """The cards of a node. Two neighbours share a PCIe root, each half of the node is one NUMA node."""
    return [
        Slot(
            minor=minor,
            uuid=f"GPU-{uuid.uuid5(CARD_UUIDS, f'{node}/gpu-{minor}')}",
            pci_bus_id=f"0000:{0x15 + 0x20 * (minor // 2) + 5 * (minor % 2):02x}:00.0",
            pcie_root=f"pci0000:{0x10 + 0x20 * (minor // 2):02x}",
            numa_node=int(minor >= kind.gpus / 2),
        )
        for minor in range(kind.gpus)
    ]


def pool(fleet: Fleet, kind: Kind, node: str, taints: Mapping[str, Sequence[Taint]]) -> dict[str, dict[str, Any]]:
    """Slice name → spec without the pool's generation, which only the publisher knows.

    `taints` are those of this node by device name; one on `gpu-<n>` covers the card and all that is cut from
    it, as the driver's health monitor does it.
    """
    cards = slots(kind, node)
    table = geometry.TABLES[kind.card.mig_table]
    shared = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "resourceSliceCount": len(cards) + 1},
    }
    counters = [{"name": slot.counter_set, "counters": counters_of_card(table)} for slot in cards]
    specs: dict[str, dict[str, Any]] = {f"{node}-{DRIVER}-counters": shared | {"sharedCounters": counters}}
    for slot in cards:
        devices = [_tainted(device, slot, taints) for device in devices_of(fleet, kind.card, slot)]
        specs[f"{node}-{DRIVER}-{slot.name}"] = shared | {"devices": devices}
    return specs


def devices_of(fleet: Fleet, card: Card, slot: Slot) -> list[dict[str, Any]]:
    """The whole card and all its MIG devices, sorted by name: the scheduler takes the first that fits."""
    table = geometry.TABLES[card.mig_table]
    common = _common_attributes(fleet, card, slot)
    whole = {
        "name": slot.name,
        "attributes": {"type": {"string": "gpu"}, "uuid": {"string": slot.uuid}} | common,
        "capacity": {name: {"value": value} for name, value in capacity_of_card(table).items()},
        "consumesCounters": [{"counterSet": slot.counter_set, "counters": counters_of_card(table)}],
    }
    partitions = [
        {
            "name": device_name(slot, profile, start),
            "attributes": {
                "type": {"string": "mig"},
                "parentUUID": {"string": slot.uuid},
                "profile": {"string": profile.name},
            }
            | common,
            "capacity": {name: {"value": value} for name, value in capacity_of(profile).items()},
            "consumesCounters": [{"counterSet": slot.counter_set, "counters": counters_of(profile, start)}],
        }
        for profile in table
        for start in profile.starts
    ]
    return sorted([whole, *partitions], key=lambda device: str(device["name"]))


def device_name(slot: Slot, profile: geometry.MigProfile, start: int) -> str:
    """E.g. `gpu-0-mig-1g10gb-me-20-3`: a DNS label, so dots go and `+` becomes a hyphen."""
    label = profile.name.replace(".", "").replace("+", "-")
    return f"{slot.name}-mig-{label}-{profile.gi_id}-{start}"


def capacity_of(profile: geometry.MigProfile) -> dict[str, str]:
    return _quantities(_amounts(profile))


def capacity_of_card(table: Sequence[geometry.MigProfile]) -> dict[str, str]:
    """Each dimension at its highest over all profiles, which is how the driver measures the whole card."""
    amounts = [_amounts(profile) for profile in table]
    return _quantities({name: max(each[name] for each in amounts) for name in amounts[0]})


def _amounts(profile: geometry.MigProfile) -> dict[str, int]:
    return {
        "copyEngines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": profile.encoders,
        "jpegEngines": profile.jpeg_engines,
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "ofaEngines": profile.ofa_engines,
    }


def _quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: of_mib(amount) if name == "memory" else str(amount) for name, amount in amounts.items()}


def counters_of(profile: geometry.MigProfile, start: int) -> dict[str, dict[str, str]]:
    return _counters(capacity_of(profile), range(start, start + profile.size))


def counters_of_card(table: Sequence[geometry.MigProfile]) -> dict[str, dict[str, str]]:
    return _counters(capacity_of_card(table), range(geometry.MEMORY_SLICES))


def _counters(capacity: Mapping[str, str], memory_slices: range) -> dict[str, dict[str, str]]:
    """`copyEngines` becomes counter `copy-engines`; each memory slice is one more counter."""
    named = {re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", name).lower(): value for name, value in capacity.items()}
    named |= {f"memory-slice-{index}": "1" for index in memory_slices}
    return {name: {"value": value} for name, value in named.items()}


def _common_attributes(fleet: Fleet, card: Card, slot: Slot) -> dict[str, dict[str, Any]]:
    return {
        "productName": {"string": card.product},
        "brand": {"string": card.brand},
        "architecture": {"string": card.architecture},
        "cudaComputeCapability": {"version": f"{card.compute}.0"},
        "driverVersion": {"version": fleet.driver_version},
        "cudaDriverVersion": {"version": f"{fleet.cuda_version}.0"},
        "resource.kubernetes.io/pciBusID": {"string": slot.pci_bus_id},
        "resource.kubernetes.io/pcieRoot": {"string": slot.pcie_root},
        "resource.kubernetes.io/numaNode": {"int": slot.numa_node},
    }


def _tainted(device: dict[str, Any], slot: Slot, taints: Mapping[str, Sequence[Taint]]) -> dict[str, Any]:
    found = [
        *taints.get(slot.name, ()),
        *(taints.get(device["name"], ()) if device["name"] != slot.name else ()),
    ]
    return device | {"taints": found} if found else device
