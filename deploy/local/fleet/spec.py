"""fleet.yaml as frozen values: which cards there are and which kinds of node carry them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from deploy.local.fleet import geometry

# The fleet of the demo and of the tests.
FLEET_FILE = Path(__file__).parent.parent / "fleet.yaml"


@dataclass(frozen=True)
class Card:
    """What NVML reports of a card. `mig_table` is its key in geometry.TABLES, empty if it cannot do MIG."""

    product: str
    brand: str
    architecture: str
    compute: str
    memory_mib: int
    mig_table: str = ""


@dataclass(frozen=True)
class Mig:
    """`dynamic`: the DRA driver cuts cards on demand. `mixed`: each is cut into `devices`, profile: count."""

    strategy: Literal["dynamic", "mixed"]
    config: str = ""
    devices: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Sharing:
    """The device plugin's sharing: each card is advertised `replicas` times, under `.shared` when renamed."""

    strategy: Literal["time-slicing"]
    replicas: int
    rename: bool
    config: str


@dataclass(frozen=True)
class Kind:
    """One kind of node: `nodes` of them, each with `gpus` cards reached by `path`."""

    name: str
    nodes: int
    card: Card
    gpus: int
    path: Literal["dra", "device-plugin"]
    machine: str
    cpu: int
    memory_gib: int
    disk_gib: int
    zone: str
    mig: Mig | None = None
    sharing: Sharing | None = None

    def node_names(self) -> Iterator[str]:
        return (f"{self.name}-{index}" for index in range(self.nodes))


@dataclass(frozen=True)
class Fleet:
    driver_version: str
    cuda_version: str
    kubelet_version: str
    mig_strategy: str
    reserved_cpu: int
    reserved_memory_gib: int
    gfd_timestamp: int
    kinds: tuple[Kind, ...]

    def with_extra(self, extra: Mapping[str, int]) -> "Fleet":
        """The same fleet with so many more nodes of each kind; ValueError names a kind that does not exist."""
        known = {kind.name for kind in self.kinds}
        for name in extra:
            if name not in known:
                raise ValueError(f"no node kind {name}; there are {', '.join(sorted(known))}")
        return replace(self, kinds=tuple(replace(k, nodes=k.nodes + extra.get(k.name, 0)) for k in self.kinds))


def load(path: Path) -> Fleet:
    """Read and check a fleet file. ValueError says what is wrong, TypeError which key is unknown."""
    raw = yaml.safe_load(path.read_text())
    cards = {name: _card(fields) for name, fields in raw["cards"].items()}
    return Fleet(
        driver_version=raw["driver"]["version"],
        cuda_version=raw["driver"]["cuda"],
        kubelet_version=raw["kubelet"],
        mig_strategy=raw["migStrategy"],
        reserved_cpu=raw["reserved"]["cpu"],
        reserved_memory_gib=raw["reserved"]["memoryGiB"],
        gfd_timestamp=raw["gfdTimestamp"],
        kinds=tuple(_kind(name, fields, cards) for name, fields in raw["kinds"].items()),
    )


def _card(fields: Mapping[str, Any]) -> Card:
    card = Card(**_renamed(fields, memoryMiB="memory_mib", migTable="mig_table"))
    if card.mig_table and card.mig_table not in geometry.TABLES:
        raise ValueError(f"{card.product}: no MIG table {card.mig_table}; there are {', '.join(geometry.TABLES)}")
    return card


def _kind(name: str, fields: Mapping[str, Any], cards: Mapping[str, Card]) -> Kind:
    values = _renamed(fields, memoryGiB="memory_gib", diskGiB="disk_gib")
    values["card"] = cards[values["card"]]
    values["mig"] = Mig(**values["mig"]) if "mig" in values else None
    values["sharing"] = Sharing(**values["sharing"]) if "sharing" in values else None
    kind = Kind(name=name, **values)
    if kind.mig and not kind.card.mig_table:
        raise ValueError(f"{name}: {kind.card.product} cannot do MIG")
    if (kind.path == "dra") != (kind.mig is not None and kind.mig.strategy == "dynamic"):
        raise ValueError(f"{name}: path dra and MIG strategy dynamic are simulated together only")
    return kind


def _renamed(fields: Mapping[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in fields.items()}
