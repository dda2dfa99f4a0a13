"""The input of the admission rules: a request, the capacity for it, and the limits on it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

PRIORITIES = {"batch": 50, "normal": 100, "critical": 1000}
LIVE_PER_PROJECT = 250
"""The most live allocations of a project. The CRD GpuProject allows 256 (maxProperties)."""


@dataclass(frozen=True)
class CountedLimit:
    """A limit that the portal counts itself, in slices of the requested offering; ``holder`` is who it limits."""

    dimension: str
    holder: str
    limit: int
    used: int


@dataclass(frozen=True)
class AllocationLimit:
    """The number of live or scheduled allocations that a holder may have.

    ``holder`` is "project", or "member" for one person in the project. With ``is_scheduled``, the limit is on
    allocations that wait for their start time, else on live ones.
    """

    holder: str
    is_scheduled: bool
    limit: int
    used: int

    @property
    def is_full(self) -> bool:
        return self.used >= self.limit


class ApplicableLimits(NamedTuple):
    """The limits on a new allocation: ``live`` if it starts now, ``scheduled`` if it starts later. ``numbers`` are
    those that the project's live allocations have.
    """

    live: tuple[AllocationLimit, ...] = ()
    scheduled: tuple[AllocationLimit, ...] = ()
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Fact(Generic[T]):
    """Something that a rule needs to know of a request beside its capacity (``allocations.requests.fact_providers``);
    ``unknown`` is its value where nobody has read it.
    """

    name: str
    unknown: T


ALLOCATION_LIMITS = Fact("limits on the number of allocations", ApplicableLimits())


@dataclass(frozen=True)
class NeedsApproval:
    """What a rule answers to a request that only a ``role`` in the team may approve."""

    role: str
    detail: str
    hint: str


@dataclass(frozen=True)
class AdmissionInput:
    """A request with everything that decides whether it is admitted.

    Amounts are in slices of the offering; times are aware UTC.

    - ``at``: the start that was asked for; None for a start now.
    - ``facts``: what else its rules need to know, by ``Fact``.
    - ``quota``: the most that Kueue could give the team if nothing were in use; ``used`` is the part in use.
    - ``own``: the team's nominal quota plus its borrowing limit; None if borrowing is unlimited.
    - ``counted_limits``: the limits that the portal counts itself.
    - ``spread``: whether slices by DRA may be on several nodes.
    - ``max_colocated``: the most slices that one request can get on an idle fleet under its constraints; None without
      constraints. ``free_colocated`` is the most that it can get now; only ``fits`` needs it. Both are None where
      Kubernetes does not name devices.
    - ``one_at_a_time``: whether the device plugin refuses a container that requests more than one of the ``replicas``
      of a GPU.
    """

    offering: str
    pool: str
    kind: str
    path: str
    count: int
    total: int
    free: int
    per_node: int
    quota: int
    used: int
    team: str
    priority: str = "normal"
    hidden: bool = False
    at: datetime | None = None
    facts: Mapping[Fact[Any], Any] = field(default_factory=dict)
    spread: bool = False
    constraints: tuple[str, ...] = ()
    max_colocated: int | None = None
    free_colocated: int | None = None
    one_at_a_time: bool = False
    replicas: int = 1
    sharing: str = ""
    own: int | None = None
    department: str = ""
    counted_limits: tuple[CountedLimit, ...] = ()

    def fact(self, fact: Fact[T]) -> T:
        """Return what is known of the fact."""
        value: T = self.facts.get(fact, fact.unknown)
        return value
