"""Types for an allocation at one moment: its intent, and its observed state in the cluster. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from allocations.domain.objects import Ref, Slice, Snapshot
from allocations.domain.phases import Facts, LeaseFacts, Phase


@dataclass(frozen=True)
class Intent:
    """What people and deadlines decided about an allocation, as its row stores it."""

    released: bool = False
    not_before: datetime | None = None
    needs_attention: bool = False
    phase: str = Phase.QUEUED
    phase_since: datetime | None = None
    reason: str = ""
    message: str = ""
    number_wait: str = ""
    """Why it got no number at its start; "" if it did."""
    unpublished: str = ""
    """What it holds and no node publishes any more, such as ``gpu-0 of node h100-0``."""
    due_at: datetime | None = None
    """When time alone ends it: its end, or the end of its wait."""


@dataclass(frozen=True)
class Deadlines:
    """How long a start may take, and how long pods get to end after an eviction."""

    start: timedelta
    grace: timedelta


class Shared(NamedTuple):
    """Which of the namespace's shared objects have an allocation: the guard admits its pods, and a hold quota has its
    slices.
    """

    guard: bool
    quota: bool


@dataclass(frozen=True)
class ObservedAllocation:
    """The observed state of an allocation in the cluster, and what follows from it."""

    facts: Facts
    lease: LeaseFacts
    held: tuple[Slice, ...]
    occupied: tuple[Slice, ...]
    users: tuple[Ref, ...]
    queues: bool
    """Whether it should have a lease: it is not released, and waits for nothing else."""
    is_granted: bool
    """Whether it may hold slices: Kueue has admitted it and does not evict it."""
    is_usable: bool
    """Whether tenants' pods may use it, so that the GpuProject lists it. Never before it is charged."""
    keeps_quota: bool
    """Whether its hold quota still has its slices, because pods of its class exist."""
    start_by: datetime | None
    evict_at: datetime | None
    snapshot: Snapshot

    @property
    def shared(self) -> Shared:
        """Return which of the shared objects should have the allocation."""
        return Shared(self.is_usable, self.keeps_quota)

    def with_guard_open(self, unpublished: str) -> "ObservedAllocation":
        """Return the same state once the guard admits its pods; ``unpublished`` is what no node publishes of it."""
        return replace(self, facts=replace(self.facts, listed=True, unpublished=unpublished))

    def with_blocked(self, why: str) -> "ObservedAllocation":
        """Return the same state while its claim is kept from the scheduler."""
        return replace(self, facts=replace(self.facts, blocked=why))

    def revision(self, ref: Ref) -> str:
        """Return the observed resourceVersion of the object as Kubernetes writes it; "" if it is not observed."""
        observed = self.snapshot.get(ref)
        return str(observed.resource_version) if observed else ""
