"""The slots of a DRA node with their cards, and the attributes common to all devices of a card."""

import uuid
from dataclasses import dataclass
from typing import Any

from deploy.local.fleet.spec import Card, Fleet, Kind

CARD_UUIDS = uuid.UUID("5d3f7a0e-2f0c-5f0b-9a53-6b1c1f0e7a11")


@dataclass(frozen=True)
class Slot:
    """A card in a slot: its minor number, by which its devices are named, and its position in the node."""

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
    """Return the cards of a node. Two neighbours share a PCIe root; each half of the node is one NUMA node."""
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


def attributes(fleet: Fleet, card: Card, slot: Slot) -> dict[str, dict[str, Any]]:
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
