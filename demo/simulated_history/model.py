"""What a simulated history is drawn from, and what it consists of."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from uuid import UUID

from demo.simulated_history.past_intervals import PastCapacity, PastHold, PastPods, PastUse
from quotas.catalog.mig_tables import Geometry
from quotas.metering.units import FoundUnit, Unit, Value


@dataclass(frozen=True)
class FleetUnit:
    """A unit as it was when it was first recorded, at ``since``."""

    unit: Unit
    found: FoundUnit
    value: Value
    since: datetime


@dataclass(frozen=True)
class Slice:
    """A slice of an offering. ``requests`` is what it takes of its pool, by resource."""

    key: str
    flavor: str
    kind: str
    profile: str
    resource: str
    gpu_share: Fraction
    pool: str
    requests: Mapping[str, int]


@dataclass(frozen=True)
class ProjectMembers:
    """A project, and the people of its team."""

    department: str
    team: str
    slug: str
    namespace: str
    members: Sequence[str]


@dataclass(frozen=True)
class FlavorPrice:
    """The price of a GPU-hour that is in force from before the history until after it."""

    per_gpu_hour: Decimal
    currency: str


@dataclass(frozen=True)
class World:
    """A cluster's fleet and its users. ``quotas`` are units by team and pool, ``pools`` what a unit of one amounts to.
    ``geometries`` are by flavor; the GPUs of ``divisible`` ones are divided on demand.
    """

    cluster: str
    start: datetime
    until: datetime
    units: Sequence[FleetUnit]
    slices: Sequence[Slice]
    geometries: Mapping[str, Geometry]
    divisible: Collection[str]
    projects: Sequence[ProjectMembers]
    quotas: Mapping[tuple[str, str], int]
    pools: Mapping[str, Mapping[str, int]]
    prices: Mapping[str, FlavorPrice]

    @cached_property
    def gpus_by_flavor(self) -> Mapping[str, float]:
        found: dict[str, float] = defaultdict(float)
        for one in self.units:
            found[one.value.flavor] += float(one.found.count * one.value.gpus)
        return found


@dataclass(frozen=True)
class LayoutChange:
    """That the nodes of a flavor had ``before`` of one resource alone until ``start``, and what they have now from
    ``end`` on. Between, nothing is available. ``slice`` is one of the former layout.
    """

    flavor: str
    slice: Slice
    start: datetime
    end: datetime


@dataclass(frozen=True)
class PriceChange:
    """That a GPU-hour of a flavor costs this much from ``at`` on."""

    flavor: str
    at: datetime
    price: FlavorPrice


class End(Enum):
    """Why a hold ended."""

    RELEASED = "released"
    EXPIRED = "expired"
    EVICTED = "evicted"


@dataclass(frozen=True)
class HeldAllocation:
    """An allocation of the history, which was asked for until ``ends_at``."""

    id: UUID
    name: str
    project: str
    member: str
    offering: str
    count: int
    labels: Mapping[str, str]
    created_at: datetime
    held_at: datetime
    ends_at: datetime
    ended_at: datetime
    end: End


@dataclass
class History:
    """What happened in ``[start, until)``. ``allocations`` are those whose intervals are among ``holds``."""

    start: datetime
    until: datetime
    capacity: list[PastCapacity] = field(default_factory=list)
    holds: list[PastHold] = field(default_factory=list)
    allocations: list[HeldAllocation] = field(default_factory=list)
    foreign: list[PastUse] = field(default_factory=list)
    pods: list[PastPods] = field(default_factory=list)
    layouts: list[LayoutChange] = field(default_factory=list)
    prices: list[PriceChange] = field(default_factory=list)
