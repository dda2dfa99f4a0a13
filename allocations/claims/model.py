"""A claim as it was understood, and the devices that a driver publishes: what the other modules speak in.

Names of attributes and capacities are qualified here (``gpu.nvidia.com/memory``): the document may leave out the
driver's own domain. Source: resource.k8s.io/v1 (DeviceRequest, DeviceConstraint, Device).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocations.domain.allocation_spec import Sharing
from quotas.catalog.nvidia import DRA_DRIVER, MIG_CLASS, WHOLE_GPU_CLASS

CLASSES = {"gpu": WHOLE_GPU_CLASS, "mig": MIG_CLASS}
"""Kinds of device that may be asked for, and NVIDIA's DeviceClass of each."""
PRODUCT = f"{DRA_DRIVER}/productName"
PROFILE = f"{DRA_DRIVER}/profile"
SHARES = f"{DRA_DRIVER}/shares"
MAX_DEVICES = 32
"""A claim's allocation lists at most so many (AllocationResultsMaxSize)."""

Value = str | int | bool


def qualified(name: str) -> str:
    """The name with its domain: the driver's where none is said."""
    return name if "/" in name else f"{DRA_DRIVER}/{name}"


def short(name: str) -> str:
    """The name as people write it: without the driver's domain."""
    return name.removeprefix(f"{DRA_DRIVER}/")


@dataclass(frozen=True)
class Device:
    """A device as published, all names qualified. ``versions`` are the attributes that are versions, not strings.
    ``counters``: what it takes of its card, by (counter set, counter). ``shareable``: several claims may have it."""

    node: str
    name: str
    kind: str
    attributes: Mapping[str, Value]
    versions: frozenset[str] = frozenset()
    capacity: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[tuple[str, str], str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()
    shareable: bool = False


@dataclass(frozen=True)
class Condition:
    """``type``: string, int, bool or version for an attribute, quantity for a capacity. Several values with ``in``."""

    name: str
    type: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Toleration:
    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None


@dataclass(frozen=True)
class Choice:
    """Devices of one kind that meet all conditions. ``count`` None is all of a node. ``capacity`` is what is taken of
    a device that serves several claims; ``cel`` an operator's own expressions; ``path`` where the document says it."""

    path: str
    name: str
    device: str
    count: int | None
    conditions: tuple[Condition, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    cel: tuple[str, ...] = ()
    admin_access: bool = False


@dataclass(frozen=True)
class Request:
    """Exactly the one choice, or the first of several that can be had."""

    path: str
    name: str
    choices: tuple[Choice, ...]
    is_list: bool = False


@dataclass(frozen=True)
class Constraint:
    """Devices of the named requests (all where none is named) have the same value of the attribute, or each another."""

    path: str
    attribute: str
    distinct: bool
    requests: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """How pods share what the named requests get (all where none is named), devices of one kind."""

    requests: tuple[str, ...]
    device: str
    sharing: Sharing


@dataclass(frozen=True)
class Claim:
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Config, ...] = ()

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(choice for request in self.requests for choice in request.choices)

    @property
    def has_raw_cel(self) -> bool:
        return any(choice.cel for choice in self.choices)

    @property
    def has_admin_access(self) -> bool:
        return any(choice.admin_access for choice in self.choices)
