"""The controller of allocations: reconciles one allocation with its observed state. Idempotent."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from allocations.capacity import device_inventory
from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused
from allocations.cluster.manifests import lease
from allocations.domain.actions import is_gone
from allocations.domain.allocation_spec import LeaseRecord
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.objects import Applied, ObservedObject, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.domain.observed_facts import workload_facts
from allocations.domain.phases import Phase
from allocations.lifecycle import held_intervals, slot_numbers, spec_of_row, transitions
from allocations.lifecycle.assessment import assess
from allocations.lifecycle.held_intervals import HeldIntervals
from allocations.lifecycle.modes.registry import mode_of
from allocations.models import Allocation
from allocations.reconcile import allocation_state, claim_search, deadlines, device_affinity, mirror, recovery
from allocations.reconcile.engine.applied import forget
from allocations.reconcile.engine.apply import apply
from allocations.reconcile.engine.plan import plan
from allocations.reconcile.metering import foreign_use, ledger, repair
from allocations.reconcile.project import apply_hold_quota
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.workqueue import targets
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)
SLOT_WAIT = timedelta(seconds=2)
RECHECK_AFTER = timedelta(seconds=5)
"""How long to wait for an event of the guard."""


def reconcile_allocation(id_: str, client: Client) -> datetime | None:
    """Reconcile the allocation's lease, claim and holder pod; return when to reconcile again, or None.

    1. Assign a slot number to an allocation that starts now, unless it has to wait for one.
    2. Record how long it was held, and when its hours end.
    3. Turn passed deadlines into intent (expired, start failed, evicted without requeue). A custom claim that was
       allocated more than its lease counts is a failed start too, and one that the scheduler would search in vain
       does not reach it.
    4. Update the device affinity of its claims.
    5. Open usage intervals that the watcher could not open.
    6. Derive the phase, and append a Transition if it changed. What can be used is active once the guard admits
       its pods, which the project's reconcile records.
    7. Have the project reconciled, if its guard or quotas must change for this allocation, or only write its own hold
       quota. What cannot be used any more waits here until the guard is seen to admit none of its pods.
    8. Apply the plan of the allocation's own objects.
    A refusal by the cluster while the allocation starts is a failed start.

    One that has ended is reconciled with what is seen of it later, unless its name is another's by then. One whose name
    is that of a lost allocation on the cluster ends before all of this (``recovery``).

    Raises ClusterUnavailable, ClusterRefused, MirrorStale.
    """
    target = targets.allocation(client.cluster, id_)
    with advisory_lock(target):
        recorded = allocation_state.read(client.cluster, id_)
        if recorded is None:
            return None
        was_ended, number = recorded.row.ended_at is not None, recorded.row.number
        if was_ended:
            mirror.require_recent(client.cluster)
        number_wait = _assign_number(recorded.row)
        if was_ended or recorded.row.number != number:
            recorded = allocation_state.read(client.cluster, id_)
            assert recorded is not None
        row, snapshot, applied, intervals, unpublished = recorded
        derived: dict[str, Any] = {"number_wait": number_wait, "unpublished": unpublished}
        spec = spec_of_row.resolved_spec(row)
        mode, found = mode_of(spec), snapshot.get(lease.ref(spec))
        if row.ended_at is not None and _name_is_of_another(row, found):
            return None
        if row.ended_at is None and found is not None and recovery.end_if_superseded(row, found, applied):
            return None
        state = assess(row, snapshot, applied, **derived)
        if transitions.record_time(row, state, intervals):
            spec = spec_of_row.resolved_spec(row)
        blocked = claim_search.blocked(row, spec, snapshot, state)
        if deadlines.apply(row, spec, state, blocked) or _claim_exceeds_lease(row, state):
            state = assess(row, snapshot, applied, **derived)
        if device_affinity.update_affinity(row, spec, snapshot, state, is_blocked=bool(blocked)):
            spec = spec_of_row.resolved_spec(row)
            state = assess(row, snapshot, applied, **derived)
        is_metered, intervals = _open_intervals(row, state, snapshot, intervals)
        if blocked:
            state = state.with_blocked(blocked)
        if state.facts.listed or not state.is_usable:
            transitions.record_phase(row, state, intervals)
        is_due = mode.needs_project(spec, state, snapshot)
        if not is_due and mode.needs_quota(spec, state, snapshot):
            apply_hold_quota(spec, snapshot, client)
        transitions.record_shared(row, state.shared, is_due=is_due)
        if state.facts.listed and not state.is_usable:
            return clock.now() + RECHECK_AFTER
        desired = mode.desired_state(spec, state, snapshot, applied, is_blocked=bool(blocked))
        try:
            apply(client, plan(desired, snapshot, applied), target)
        except ClusterRefused as error:
            if not _start_refused(row, state, error):
                raise
            return clock.now()
        forget(client.cluster, _gone_objects(spec, snapshot, applied, {Ref.of_manifest(m) for m in desired.objects}))
        intent = replace(spec_of_row.intent(row), **derived)
        moments = [mode.wake_at(spec, intent, state) if is_metered else clock.now() + SLOT_WAIT]
        if blocked:
            moments.append(clock.now() + claim_search.SEARCH_AGAIN_AFTER)
        return min((moment for moment in moments if moment is not None), default=None)


def _name_is_of_another(row: Allocation, found: ObservedObject | None) -> bool:
    """Return whether objects of this name are a later allocation's: it is live, or its row was lost and ``found`` is
    its lease.

    To be asked after a recent mirror was read, since a snapshot may have the other's objects.
    """
    if found is not None and LeaseRecord.is_of_another(workload_facts(found).get("record", ""), row.pk):
        return True
    return Allocation.objects.filter(project=row.project_id, name=row.name, ended_at=None).exists()


def _open_intervals(
    row: Allocation, state: ObservedAllocation, snapshot: Snapshot, intervals: HeldIntervals
) -> tuple[bool, HeldIntervals]:
    """Open the intervals that the watcher could not open. Return whether that was possible: it is not while another
    holder's interval on a slot is open; and the allocation's intervals as they are then.

    If nothing of a released allocation is left, close its open intervals now, flagged estimated.
    """
    if state.facts.released and state.facts.nothing_left:
        ledger.close_all(row, at=state.facts.now)
    if row.recovered:
        foreign_use.end_of_recovered(row, snapshot)
    try:
        if state.held and repair.open_missing(row, snapshot, intervals):
            intervals = held_intervals.read(row.pk)
            transitions.record_time(row, state, intervals)
    except SlotHeld as error:
        log.warning("ledger.slot_held", error=str(error))
        return False, intervals
    return True, intervals


def _assign_number(row: Allocation) -> str:
    """Assign a slot number if the allocation starts now; return why it has to wait for one, or "".

    Raises MirrorStale: after a restore of the database its lease may have a number that the row lacks.
    """
    now = clock.now()
    is_early = row.starts_at is not None and row.starts_at > now
    if row.number is not None or row.desired == Allocation.Desired.RELEASED or is_early or deadlines.is_over(row, now):
        return ""
    mirror.require_recent(row.project.cluster_id)
    return slot_numbers.assign(row)


def _claim_exceeds_lease(row: Allocation, state: ObservedAllocation) -> bool:
    """Record a failed start if a custom claim was allocated more than its lease counts; return whether it was.

    This happens when the fleet got larger devices after the request.
    """
    is_new = state.queues and row.phase in (Phase.QUEUED, Phase.STARTING)
    claim = CustomClaim.of_column(row.claim)
    if claim is None or claim.built is None or not is_new or not state.occupied:
        return False
    excess = device_inventory.excess(row.offering.flavor, claim.built.units, state.occupied)
    return bool(excess) and transitions.start_failed(row, "more_than_counted", excess)


def _start_refused(row: Allocation, state: ObservedAllocation, error: ClusterRefused) -> bool:
    """Record a failed start if the cluster refused the allocation's objects; return whether one was recorded.

    A refusal that names a wrong field counts at once, any other (a policy, a quota of the namespace) at the start
    deadline.
    """
    if state.start_by is None:
        return False
    is_final = any(cause.get("field") for cause in error.causes) or state.facts.now >= state.start_by
    return is_final and transitions.start_failed(row, "start_refused", error.message)


def _gone_objects(spec: ResolvedSpec, snapshot: Snapshot, applied: dict[Ref, Applied], kept: set[Ref]) -> list[Ref]:
    """Return the applied objects that are gone and not desired, and a gone lease's record of its status."""
    gone = [ref for ref, record in applied.items() if ref not in kept and is_gone(ref, snapshot, record)]
    return [*gone, lease.status_ref(spec)] if lease.ref(spec) in gone else gone
