"""fleet.yaml as frozen dataclasses: the cards, and the kinds of node that have them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from deploy.local.fleet import mig_configs
from deploy.local.fleet.mig_configs import Layout
from quotas.catalog.mig_tables import TABLES

Added = Mapping[str, Mapping[str, int]]

# DRAPartitionableDevices, DRAConsumableCapacity and DRADeviceTaints are on by default from here.
DEVICE_FEATURES_SINCE = (1, 36)
# The fleet of the demo and of the tests.
FLEET_FILE = Path(__file__).parent.parent / "fleet.yaml"


@dataclass(frozen=True)
class Card:
    """A card as NVML reports it. `mig_table` is its key in mig_tables.TABLES, empty without MIG."""

    product: str
    brand: str
    architecture: str
    compute: str
    memory_mib: int
    mig_table: str = ""


@dataclass(frozen=True)
class Mig:
    """How the cards of a kind are divided.

    With `dynamic` the DRA driver divides them on demand. With `static` they are divided beforehand, and the DRA driver
    publishes the instances. With `mixed` and `single` the MIG manager divides them, and the device plugin names the
    instances by that strategy.

    `config` is the initial layout's name in mig_configs; `layout` is its content for one card.
    """

    strategy: Literal["dynamic", "static", "mixed", "single"]
    config: str = ""
    layout: Layout = None

    @property
    def managed(self) -> bool:
        return self.strategy in ("mixed", "single")


@dataclass(frozen=True)
class Sharing:
    """The device plugin's sharing: each device of `resource` is published `replicas` times, under `.shared` if renamed.
    `config` is the name of the plugin's configuration.
    """

    strategy: Literal["time-slicing", "mps"]
    replicas: int
    config: str
    rename: bool = False
    resource: str = "nvidia.com/gpu"


@dataclass(frozen=True)
class Vgpu:
    """A node that is a virtual machine with virtual cards: version and branch of the hypervisor's driver."""

    host_driver: str
    host_branch: str


@dataclass(frozen=True)
class Kind:
    """A kind of node: `nodes` of them, each with `gpus` cards through the backend `path`.

    `shares` is the DRA driver's --consumable-shares, 0 if off; `clique` is the number of nodes in an NVLink clique.
    """

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
    vgpu: Vgpu | None = None
    shares: int = 0
    clique: int = 0

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
    mig_configs: Mapping[str, Mapping[str, int]]
    kinds: tuple[Kind, ...]
    has_device_taints: bool = True

    def on(self, version: tuple[int, int]) -> "Fleet":
        """Return what NVIDIA's DRA driver can publish on a version of Kubernetes.

        Before 1.36 the API server drops counters, shares and taints of devices: whole cards and their slices would be
        given out together. So cards are published whole, and unhealthy ones not at all.
        """
        if version >= DEVICE_FEATURES_SINCE:
            return self
        kinds = (replace(kind, shares=0) for kind in self.kinds)
        whole = (replace(kind, mig=None) if kind.mig and kind.mig.strategy == "dynamic" else kind for kind in kinds)
        return replace(self, kinds=tuple(whole), has_device_taints=False)

    def with_extra(self, extra: Mapping[str, int]) -> "Fleet":
        """Return the fleet with this many more nodes of each kind; raise ValueError naming an unknown kind."""
        names = {kind.name for kind in self.kinds}
        for name in extra:
            if name not in names:
                raise ValueError(f"no node kind {name}; there are {', '.join(sorted(names))}")
        return replace(self, kinds=tuple(replace(k, nodes=k.nodes + extra.get(k.name, 0)) for k in self.kinds))


def load(path: Path) -> Fleet:
    """Read and check a fleet file; raise ValueError for an invalid value, TypeError for an unknown key."""
    raw = yaml.safe_load(path.read_text())
    cards = {name: _card(fields) for name, fields in raw["cards"].items()}
    added = raw["migConfigs"]
    return Fleet(
        driver_version=raw["driver"]["version"],
        cuda_version=raw["driver"]["cuda"],
        kubelet_version=raw["kubelet"],
        mig_strategy=raw["migStrategy"],
        reserved_cpu=raw["reserved"]["cpu"],
        reserved_memory_gib=raw["reserved"]["memoryGiB"],
        gfd_timestamp=raw["gfdTimestamp"],
        mig_configs=added,
        kinds=tuple(_kind(name, fields, cards, added) for name, fields in raw["kinds"].items()),
    )


def _card(fields: Mapping[str, Any]) -> Card:
    card = Card(**_renamed(fields, memoryMiB="memory_mib", migTable="mig_table"))
    if card.mig_table and card.mig_table not in TABLES:
        raise ValueError(f"{card.product}: no MIG table {card.mig_table}; there are {', '.join(TABLES)}")
    return card


def _kind(name: str, fields: Mapping[str, Any], cards: Mapping[str, Card], added: Added) -> Kind:
    values = _renamed(fields, memoryGiB="memory_gib", diskGiB="disk_gib")
    values["card"] = cards[values["card"]]
    if "mig" in values:
        values["mig"] = _mig(name, values["mig"], values["card"], added)
    if "sharing" in values:
        values["sharing"] = Sharing(**values["sharing"])
    if "vgpu" in values:
        values["vgpu"] = Vgpu(**_renamed(values["vgpu"], hostDriver="host_driver", hostBranch="host_branch"))
    kind = Kind(name=name, **values)
    if problem := _problem(kind):
        raise ValueError(f"{name}: {problem}")
    return kind


def _mig(name: str, fields: Mapping[str, Any], card: Card, added: Added) -> Mig:
    if not card.mig_table:
        raise ValueError(f"{name}: {card.product} cannot do MIG")
    mig = Mig(**fields)
    if mig.strategy == "dynamic":
        return mig
    configs = mig_configs.layouts_by_name(TABLES[card.mig_table], added)
    if mig.config not in configs:
        raise ValueError(f"{name}: no MIG configuration {mig.config}; there are {', '.join(configs)}")
    return replace(mig, layout=configs[mig.config])


def _problem(kind: Kind) -> str:
    """Return why such a node cannot be simulated; empty if it can."""
    dra = kind.path == "dra"
    if kind.mig and dra == kind.mig.managed:
        return f"MIG strategy {kind.mig.strategy} is not for path {kind.path}"
    if kind.shares and (kind.mig or not dra):
        return "shares are for whole cards by path dra"
    if dra and (kind.sharing or kind.vgpu):
        return "sharing and vgpu are for path device-plugin"
    if kind.sharing and kind.sharing.strategy == "mps" and kind.mig:
        return "MPS does not share MIG devices"
    return ""


def _renamed(fields: Mapping[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in fields.items()}
