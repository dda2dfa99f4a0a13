"""Turns deadlines that have passed into intent: the end of an allocation, or a failed start."""

from datetime import datetime

from allocations.cluster.backends import registry
from allocations.domain import reasons
from allocations.domain.held_time import Due
from allocations.domain.objects import ResolvedSpec
from allocations.domain.observed import ObservedAllocation
from allocations.domain.phases import Ending
from allocations.lifecycle import spec_of_row, transitions
from allocations.models import Allocation
from allocations.reconcile import mirror


def is_over(row: Allocation, now: datetime) -> bool:
    """Return whether the allocation is to end by time alone: its time is over, or its wait."""
    due = spec_of_row.time(row).due
    return due is not None and due.at <= now


def apply(row: Allocation, spec: ResolvedSpec, state: ObservedAllocation, blocked: str = "") -> bool:
    """End the allocation, or record a failed start, if a deadline has passed; return whether the row changed.

    ``blocked`` is why its claim does not reach the scheduler (``claim_search``).
    ``transitions.record_time`` has to come first: hours that count no longer would end it too early.
    """
    now, due = state.facts.now, spec_of_row.time(row).due
    if row.desired == Allocation.Desired.RELEASED:
        return False
    if due is not None and now >= due.at:
        return transitions.end(row, Ending.EXPIRED, due.reason, _message(due), actor="portal")
    if state.evict_at is not None and now >= state.evict_at and not row.requeue:
        reason = f"evicted_{state.lease.evicted_reason.lower()}"
        return transitions.end(row, Ending.EVICTED, reason, state.lease.evicted_message, actor="kueue")
    if state.start_by is not None and now >= state.start_by:
        # An outage of the cluster or the portal is no failed start: the cluster must name an obstacle.
        latest = mirror.of_allocations(row.project.cluster_id, spec.namespace, [row])
        blocked = blocked or registry.backend_of(spec).blocked_by(spec, latest)
        return bool(blocked) and transitions.start_failed(row, "no_fitting_device", blocked)
    return False


def _message(due: Due) -> str:
    cause = reasons.ENDED[due.reason]
    return " ".join(filter(None, (cause.sentence.format(at=due.at), cause.hint)))
