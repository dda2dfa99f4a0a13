"""The controller of allocations: reconciles one allocation with its observed state. Idempotent."""

from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from allocations.capacity import device_inventory
from allocations.cluster.backends import registry
from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused
from allocations.cluster.manifests import lease
from allocations.domain.actions import is_gone
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.objects import Applied, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed import Intent, ObservedAllocation
from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import slot_numbers, spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import device_affinity, mirror
from allocations.reconcile.engine.apply import applied as applied_of
from allocations.reconcile.engine.apply import apply, forget
from allocations.reconcile.engine.plan import plan
from allocations.reconcile.metering import ledger
from allocations.reconcile.project import reconcile_project
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.workqueue import targets
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)
SLOT_WAIT = timedelta(seconds=2)


def reconcile_allocation(id_: str, client: Client) -> datetime | None:
    """Bring the allocation's lease, claim and holder to what is wanted; returns when to look again.

    1. what starts now is given its number, or waits for one;
    2. deadlines that have passed become intent (expired, start failed, eviction without requeue), and so does a claim
       that was given more than is counted;
    3. the cards that its claims are steered to are chosen, or given up;
    4. a hold whose beginning the ledger missed is entered there;
    5. the phase is derived from the facts, and a change of it becomes a Transition: it needs none of our acts, but for
       the one that lets pods use what is held;
    6. the namespace's guard and quotas are brought along, if they must change for it;
    7. the plan of its own objects is applied.
    What the cluster refuses to a start is a failed start. Raises ClusterUnavailable, ClusterRefused.
    """
    with advisory_lock("allocation", id_):
        row = spec_of_row.rows().filter(pk=id_, project__cluster=client.cluster).first()
        if row is None:
            return None
        number_wait = _number(row)
        asked, target = spec_of_row.resolved_spec(row), targets.allocation(client.cluster, id_)
        snapshot, done = mirror.of_allocations(client.cluster, asked.namespace, [row]), applied_of(target)
        situation = _assess(row, asked, snapshot, done, number_wait)
        if _deadlines_became_intent(row, asked, situation) or _took_more(row, situation):
            situation = _assess(row, asked, snapshot, done, number_wait)
        if device_affinity.update_affinity(row, asked, snapshot, situation):
            asked = spec_of_row.resolved_spec(row)
            situation = _assess(row, asked, snapshot, done, number_wait)
        entered = _enter(row, situation, snapshot)
        opens = situation.is_usable and not situation.facts.listed
        if not opens:
            transitions.record_phase(row, situation)
        if hold.needs_project(asked, situation, snapshot):
            reconcile_project(asked.project, client)
        if opens:
            transitions.record_phase(row, situation.with_guard_open())
        wanted = hold.desired_state(asked, situation, snapshot, done)
        try:
            apply(client, plan(wanted, snapshot, done), target)
        except ClusterRefused as error:
            if not _start_refused(row, situation, error):
                raise
            return clock.now()
        forget(client.cluster, _known_gone(asked, snapshot, done, {Ref.of_manifest(m) for m in wanted.objects}))
        return hold.wake_at(asked, _intent(row, number_wait), situation) if entered else clock.now() + SLOT_WAIT


def _enter(row: Allocation, situation: ObservedAllocation, snapshot: Snapshot) -> bool:
    """Enter in the ledger what the watcher could not; False while another's interval on a slot has not ended.

    What nothing is left of cannot be held: an interval that is still open then ends now, flagged estimated.
    """
    if situation.facts.released and situation.facts.nothing_left:
        ledger.end_left(row, at=situation.facts.now)
    try:
        if situation.held:
            ledger.open_held([row], snapshot, at=situation.facts.now)
    except SlotHeld as error:
        log.warning("ledger.slot_held", error=str(error))
        return False
    return True


def _number(row: Allocation) -> str:
    """Give what starts now a number; returns why it has to wait for one, if it has to.

    Raises MirrorStale: after a restore its lease may be there, with a number that the row does not know.
    """
    now = clock.now()
    is_early = row.starts_at is not None and row.starts_at > now
    if row.number is not None or row.desired == Allocation.Desired.RELEASED or is_early or row.ends_at <= now:
        return ""
    mirror.require_recent(row.project.cluster_id)
    return slot_numbers.assign(row)


def _intent(row: Allocation, number_wait: str) -> Intent:
    return replace(spec_of_row.intent(row), number_wait=number_wait)


def _assess(
    row: Allocation, asked: ResolvedSpec, snapshot: Snapshot, done: dict[Ref, Applied], number_wait: str
) -> ObservedAllocation:
    return hold.assess(asked, _intent(row, number_wait), snapshot, done, clock.now(), spec_of_row.deadlines(row))


def _deadlines_became_intent(row: Allocation, asked: ResolvedSpec, situation: ObservedAllocation) -> bool:
    """Turn what time decided into intent on the row; whether anything was."""
    now = situation.facts.now
    if row.desired == Allocation.Desired.RELEASED:
        return False
    if now >= row.ends_at:
        return transitions.end(row, Ending.EXPIRED, "ends_at", "Its time is over.", actor="portal")
    if situation.evict_at is not None and now >= situation.evict_at and not row.requeue:
        reason = f"evicted_{situation.lease.evicted_reason.lower()}"
        return transitions.end(row, Ending.EVICTED, reason, situation.lease.evicted_message, actor="kueue")
    if situation.start_by is not None and now >= situation.start_by:
        # Only what the cluster says is in the way counts: an outage of its own or of ours is nobody's failed start.
        now_there = mirror.of_allocations(row.project.cluster_id, asked.namespace, [row])
        blocked = registry.backend_of(asked).blocked_by(asked, now_there)
        return bool(blocked) and transitions.start_failed(row, "no_fitting_device", blocked)
    return False


def _took_more(row: Allocation, situation: ObservedAllocation) -> bool:
    """Give back what a person's own claim was given beyond what its lease counts: the fleet has grown since."""
    is_new = situation.queues and row.phase in (Phase.QUEUED, Phase.STARTING)
    claim = CustomClaim.of_column(row.claim)
    if claim is None or claim.built is None or not is_new or not situation.occupied:
        return False
    words = device_inventory.excess(row.offering.flavor, claim.built.units, situation.occupied)
    return bool(words) and transitions.start_failed(row, "more_than_counted", words)


def _start_refused(row: Allocation, situation: ObservedAllocation, error: ClusterRefused) -> bool:
    """Count the refusal of what would hold it as a failed start: at once where the API server names the field that is
    wrong, else (a policy, a quota of the namespace) at the start deadline."""
    if situation.start_by is None:
        return False
    is_final = any(cause.get("field") for cause in error.causes) or situation.facts.now >= situation.start_by
    return is_final and transitions.start_failed(row, "start_refused", error.message)


def _known_gone(asked: ResolvedSpec, snapshot: Snapshot, done: dict[Ref, Applied], kept: set[Ref]) -> list[Ref]:
    """Objects that are gone and not wanted; the answer to a lease's last status write goes with the lease."""
    gone = [ref for ref, known in done.items() if ref not in kept and is_gone(ref, snapshot, known)]
    return [*gone, hold.status_ref(asked)] if lease.ref(asked) in gone else gone
