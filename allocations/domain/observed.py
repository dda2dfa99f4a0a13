"""An allocation at one moment: what was decided about it, and what is observed of it in the cluster. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from allocations.domain.objects import Ref, Slice, Snapshot
from allocations.domain.phases import Facts, LeaseFacts, Phase


@dataclass(frozen=True)
class Intent:
    """What people and deadlines decided, as the row has it."""

    released: bool = False
    not_before: datetime | None = None
    needs_attention: bool = False
    phase: str = Phase.QUEUED
    phase_since: datetime | None = None
    reason: str = ""
    message: str = ""
    number_wait: str = ""
    """Why it was given no number at its start."""


@dataclass(frozen=True)
class Deadlines:
    start: timedelta
    grace: timedelta


@dataclass(frozen=True)
class ObservedAllocation:
    """The observed state of an allocation in the cluster, with what follows from it."""

    facts: Facts
    lease: LeaseFacts
    held: tuple[Slice, ...]
    occupied: tuple[Slice, ...]
    users: tuple[Ref, ...]
    queues: bool
    """Whether it is to have a lease now: nobody released it, and nothing has to be waited for first."""
    is_granted: bool
    """Whether it may hold slices now: Kueue has admitted it, and nothing takes them back."""
    is_usable: bool
    """Whether tenants' pods may use it, so that its entry stands in the project's guard: never before it is charged."""
    keeps_quota: bool
    """Whether its hold quota has its slices: as long as a pod of its class is there."""
    start_by: datetime | None
    evict_at: datetime | None
    snapshot: Snapshot

    def with_guard_open(self) -> "ObservedAllocation":
        """Return the same state, once the guard admits its pods."""
        return replace(self, facts=replace(self.facts, listed=True))

    def revision(self, ref: Ref) -> str:
        """The resourceVersion at which the object was seen, as Kubernetes writes it; empty when it was not."""
        seen = self.snapshot.get(ref)
        return str(seen.resource_version) if seen else ""
