"""The modes by name: modules of pure functions with the same names.

The project's controller writes the guard and the hold quotas of every mode; the rest is the mode's own.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from allocations.domain.actions import DesiredState
from allocations.domain.objects import Applied, Manifest, Ref, ResolvedSpec, Slice, Snapshot
from allocations.domain.observed import Deadlines, Intent, ObservedAllocation, Shared
from allocations.lifecycle.modes import hold


class Mode(Protocol):
    """The functions of a mode; each module documents its own."""

    def assess(
        self,
        spec: ResolvedSpec,
        intent: Intent,
        snapshot: Snapshot,
        applied: Mapping[Ref, Applied],
        now: datetime,
        deadlines: Deadlines,
    ) -> ObservedAllocation: ...
    def desired_state(
        self,
        spec: ResolvedSpec,
        state: ObservedAllocation,
        snapshot: Snapshot,
        applied: Mapping[Ref, Applied],
        *,
        is_blocked: bool = False,
    ) -> DesiredState: ...
    def manifests(self, spec: ResolvedSpec) -> list[Manifest]: ...
    def charged(self, spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]: ...
    def shared(self, spec: ResolvedSpec, snapshot: Snapshot) -> Shared: ...
    def needs_project(self, spec: ResolvedSpec, state: ObservedAllocation, snapshot: Snapshot) -> bool: ...
    def needs_quota(self, spec: ResolvedSpec, state: ObservedAllocation, snapshot: Snapshot) -> bool: ...
    def wake_at(self, spec: ResolvedSpec, intent: Intent, state: ObservedAllocation) -> datetime | None: ...


MODES: Mapping[str, Mode] = {"hold": hold}


def mode_of(spec: ResolvedSpec) -> Mode:
    """Return the mode of the allocation."""
    return MODES[spec.mode]
