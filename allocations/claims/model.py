"""Types for a parsed claim and for the devices that a driver publishes. Pure.

Names of attributes and capacities are qualified (``gpu.nvidia.com/memory``); the claim's document may leave out the
driver's own domain. Source: resource.k8s.io/v1 (DeviceRequest, DeviceConstraint, Device).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocations.domain.allocation_spec import Sharing
from quotas.catalog.nvidia import DRA_DRIVER, MIG_CLASS, WHOLE_GPU_CLASS

CLASSES = {"gpu": WHOLE_GPU_CLASS, "mig": MIG_CLASS}
"""Kinds of device that a claim can request → NVIDIA's DeviceClass."""
PRODUCT = f"{DRA_DRIVER}/productName"
PROFILE = f"{DRA_DRIVER}/profile"
SHARES = f"{DRA_DRIVER}/shares"
MEMORY = f"{DRA_DRIVER}/memory"
MAX_DEVICES = 32
"""The most devices of a claim (AllocationResultsMaxSize)."""

Value = str | int | bool


def qualified(name: str) -> str:
    """Return the name with its domain, which defaults to the driver's."""
    return name if "/" in name else f"{DRA_DRIVER}/{name}"


def short(name: str) -> str:
    """Return the name without the driver's domain."""
    return name.removeprefix(f"{DRA_DRIVER}/")


@dataclass(frozen=True)
class Device:
    """A published device, with qualified names.

    ``versions`` are the attributes that are versions, not strings. ``counters`` is what it consumes of its GPU, by
    (counter set, counter). ``shareable``: whether it can serve several claims.
    """

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
    """A condition on an attribute or capacity.

    ``type`` is string, int, bool or version for an attribute, quantity for a capacity. Only the operator ``in`` has
    several values.
    """

    name: str
    type: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Toleration:
    """A toleration of device taints (resource.k8s.io/v1, DeviceToleration)."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None


@dataclass(frozen=True)
class Choice:
    """A request for devices of one kind that meet all conditions.

    ``count`` is None for all devices of a node. ``capacity`` is requested of a device that serves several claims.
    ``cel`` are raw expressions, for operators only. ``path`` is its path in the document.
    """

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
    """A request with exactly one choice, or with a list of which the first available is used."""

    path: str
    name: str
    choices: tuple[Choice, ...]
    is_list: bool = False


@dataclass(frozen=True)
class Constraint:
    """Requires equal or ``distinct`` values of an attribute for the devices of ``requests``; all requests if empty."""

    path: str
    attribute: str
    distinct: bool
    requests: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """How pods share the devices of the named requests, all of one kind; no ``requests`` means all requests."""

    requests: tuple[str, ...]
    device: str
    sharing: Sharing


@dataclass(frozen=True)
class Claim:
    """A parsed claim."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Config, ...] = ()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices of all requests."""
        return tuple(choice for request in self.requests for choice in request.choices)

    @property
    def has_raw_cel(self) -> bool:
        return any(choice.cel for choice in self.choices)

    @property
    def has_admin_access(self) -> bool:
        return any(choice.admin_access for choice in self.choices)
