"""Plain types of the catalog: what is read from a cluster, and what is found in it.

The inventory controller creates `NodeFact` and `SliceFact`; `discovery.discover` turns them into `Discovered`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from quotas.catalog.mig_profiles import Geometry
from quotas.catalog.node_shares import NodeShare

Taint = tuple[str, str, str]  # key, value, effect


@dataclass(frozen=True)
class NodeFact:
    """A node. `allocatable` and `capacity` have the GPU resources only (`nvidia.com/*`), as integers; `gives` is the
    rest of what is allocatable. `gpu_memory_mib` is what is known of a whole GPU of it, 0 if nothing is.
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    capacity: Mapping[str, int]
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False
    gives: NodeShare = field(default_factory=NodeShare)
    gpu_memory_mib: int = 0


class GpuMemory(NamedTuple):
    """The MiB of a whole GPU by model: as operators ``decided``, and as nodes seen before were ``labelled``."""

    decided: Mapping[str, int] = MappingProxyType({})
    labelled: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class DeviceFact:
    """A device of a ResourceSlice: attributes and capacity by name, without the driver's own domain.

    Attribute values are the plain string, integer or boolean. `counters` is what the device consumes:
    {counter set: {counter: quantity}}; `shareable` whether several claims may be given it.
    """

    name: str
    attributes: Mapping[str, object] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    shareable: bool = False


@dataclass(frozen=True)
class SliceFact:
    """A ResourceSlice. `pool`, `generation` and `slice_count` are its `spec.pool`."""

    name: str
    driver: str
    node: str
    pool: str
    generation: int
    slice_count: int
    devices: tuple[DeviceFact, ...] = ()
    shared_counters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassFact:
    """A DeviceClass: the resource by which pods may request its devices without a claim, "" for none, and its CEL."""

    name: str
    extended_resource: str = ""
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identity:
    """What identifies a flavor within its cluster. `strategy` is `plain`, `dynamic-mig` or e.g. `time-slicing-4`."""

    product: str
    path: str
    strategy: str


@dataclass(frozen=True)
class Supply:
    """One kind of slice on one node.

    `unit` is what a unit of its pool amounts to, `consumes` what one slice takes of the pool. `usable` slices are
    healthy now; `max_usable` is the number with all devices healthy, counting slices of this kind alone. `memory_part`
    is the part of a GPU's memory that one slice has, or takes turns with.
    """

    pool: str  # what follows `<flavor>/` in the pool's key
    unit: Mapping[str, int]
    consumes: Mapping[str, int]
    kind: str
    profile: str
    isolation: str
    gpu_share: Fraction
    usable: int
    max_usable: int
    resource: str = ""
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    sharing: str = ""
    replicas: int = 1
    memory_mib: int = 0
    memory_part: Fraction = Fraction(1)


@dataclass(frozen=True)
class Reading:
    """What one backend supplies on one node. `withheld` is published and not offered, since the labels contradict it;
    `has_unknown_division` tells that slices are missing, since it is not known how their GPU is divided.
    """

    path: str
    strategy: str
    supplies: tuple[Supply, ...]
    devices: tuple["FoundDevice", ...] = ()
    problems: tuple[str, ...] = ()
    geometry: Geometry | None = None
    withheld: tuple[Supply, ...] = ()
    has_unknown_division: bool = False


@dataclass(frozen=True)
class FoundFlavor:
    name: str
    identity: Identity
    architecture: str
    memory_mib: int
    compute_capability: str
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    partitionable: bool
    geometry: Geometry | None = None
    per_gpu: NodeShare = field(default_factory=NodeShare)


@dataclass(frozen=True)
class FoundPool:
    """A pool. `total` is in units, on nodes that are ready, schedulable and tainted, without unhealthy devices; a unit
    is `memory_part` of a GPU.
    """

    key: str
    flavor: str
    resources: Mapping[str, int]
    total: int
    memory_part: Fraction = Fraction(1)


@dataclass(frozen=True)
class FoundOffering:
    key: str
    flavor: str
    pool: str
    kind: str
    profile: str
    isolation: str
    requests: Mapping[str, int]
    resource: str
    device_class: str
    selectors: tuple[str, ...]
    gpu_share: Fraction
    per_node: int
    capacity: Mapping[str, str] = field(default_factory=dict)
    sharing: str = ""
    replicas: int = 1
    memory_mib: int = 0
    memory_part: Fraction = Fraction(1)


@dataclass(frozen=True)
class FoundNode:
    """A node. `flavor` is empty if nothing of it is offered. `units` are the healthy ones of its `capacity`, `gives` is
    what it can give pods. `gpus_per_unit` is {resource of a device plugin: GPUs that one unit of it is}, `withheld` the
    resources that are not offered though others of the node are.
    """

    name: str
    flavor: str
    ready: bool
    tainted: bool
    problem: str
    capacity: Mapping[str, int]
    units: Mapping[str, int] = field(default_factory=dict)
    gives: NodeShare = field(default_factory=NodeShare)
    gpus_per_unit: Mapping[str, Fraction] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FoundDevice:
    node: str
    name: str
    uuid: str
    flavor: str
    healthy: bool
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class NodeUsage:
    """What is used of a node: units in `foreign` use by pool, and GPUs that are `blocked` (`blocked_capacity`), which
    are `blocked_units` of each pool that are free. `problem` is the sentence for operators.
    """

    foreign: Mapping[str, int] = field(default_factory=dict)
    blocked_units: Mapping[str, int] = field(default_factory=dict)
    blocked: Fraction = Fraction(0)
    problem: str = ""


@dataclass(frozen=True)
class Discovered:
    """Everything that was found, each part sorted by name."""

    flavors: tuple[FoundFlavor, ...] = ()
    pools: tuple[FoundPool, ...] = ()
    offerings: tuple[FoundOffering, ...] = ()
    nodes: tuple[FoundNode, ...] = ()
    devices: tuple[FoundDevice, ...] = ()
