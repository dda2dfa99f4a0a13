"""Assesses rows: what was observed of an allocation, as its mode judges it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes.registry import mode_of
from allocations.models import Allocation
from portal.core import clock


def assess(
    row: Allocation, snapshot: Snapshot, applied: Mapping[Ref, Applied] | None = None, **derived: Any
) -> ObservedAllocation:
    """Return the observed state of the row's allocation; ``derived`` are fields of ``Intent`` that the row has not."""
    spec, intent = spec_of_row.resolved_spec(row), replace(spec_of_row.intent(row), **derived)
    return mode_of(spec).assess(spec, intent, snapshot, applied or {}, clock.now(), spec_of_row.deadlines(row))
