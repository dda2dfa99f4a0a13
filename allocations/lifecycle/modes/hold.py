"""Computes the desired state of a hold: the objects that an allocation should have now, given its spec and the observed
state. Pure.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.manifests import hold_quota, lease
from allocations.domain import reasons
from allocations.domain.actions import DesiredState, ReleaseReservation, SetPodsReady, nothing_left
from allocations.domain.objects import Applied, Manifest, Ref, ResolvedSpec, Slice, Snapshot, has_finished
from allocations.domain.observed import Deadlines, Intent, ObservedAllocation, Shared
from allocations.domain.observed_facts import gpu_project_facts, pod_facts
from allocations.domain.phases import FAILED_STARTS, Facts, LeaseFacts, Phase

RECHECK_AFTER = timedelta(seconds=5)
RELEASED_RECHECK_AFTER = timedelta(seconds=60)
"""How often a released allocation is looked at without an event until nothing of it is left."""
NUMBER_RETRY = timedelta(seconds=60)
"""How often an allocation that waits for a slot number tries again; also when another one of its project ends."""


def users(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Ref, ...]:
    """Return the tenants' pods of the allocation that have not finished, including terminating ones."""
    own_objects = set(own_refs(spec))
    pods = hold_quota.pods(spec, snapshot)
    return tuple(pod.ref for pod in pods if pod.ref not in own_objects and not has_finished(pod_facts(pod)))


def is_class_used(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether an unfinished pod has the allocation's PriorityClass, with or without its label."""
    pods = snapshot.pods_by_class.get(names.hold_slot(spec.number), ())
    return not all(has_finished(pod_facts(pod)) for pod in pods)


def own_refs(spec: ResolvedSpec) -> list[Ref]:
    """Return the objects that only this allocation has: its lease, claims and holder pods."""
    return [ref for group in registry.backend_of(spec).leftovers(spec) for ref in group] + [lease.ref(spec)]


def assess(
    spec: ResolvedSpec,
    intent: Intent,
    snapshot: Snapshot,
    applied: Mapping[Ref, Applied],
    now: datetime,
    deadlines: Deadlines,
) -> ObservedAllocation:
    """Return the observed state of the allocation, given its spec, its intent and the mirror."""
    backend = registry.backend_of(spec)
    the_lease = lease.read(snapshot.get(lease.ref(spec))) or LeaseFacts()
    held, occupied, pods = (
        backend.held(spec, snapshot),
        backend.occupied(spec, snapshot),
        users(spec, snapshot),
    )
    in_use, listed = bool(pods) or is_class_used(spec, snapshot), is_listed(spec, snapshot)
    # If one of several holder pods is lost, pods of the other slices are still admitted.
    is_held_open = bool(held) or (listed and bool(occupied))
    evict_at = _evict_at(the_lease, bool(occupied), deadlines)
    future_starts = [moment for moment in (intent.not_before, spec.starts_at) if moment is not None and moment > now]
    releasing_failed_start = intent.reason in FAILED_STARTS and bool(occupied)
    is_numbered = spec.number is not None
    queues = is_numbered and not (intent.released or intent.needs_attention or future_starts or releasing_failed_start)
    is_granted = queues and (the_lease.admitted or bool(occupied)) and (evict_at is None or evict_at > now)
    start_by = None
    if is_granted and not held and the_lease.admitted_at is not None:
        since = intent.phase_since if intent.phase == Phase.STARTING and intent.phase_since else now
        start_by = max(since, the_lease.admitted_at) + deadlines.start
    facts = Facts(
        now=now,
        released=intent.released,
        nothing_left=not in_use and not occupied and nothing_left(own_refs(spec), snapshot, applied),
        starts_at=spec.starts_at,
        number_wait=intent.number_wait,
        not_before=intent.not_before,
        releasing_failed_start=releasing_failed_start,
        needs_attention=intent.needs_attention,
        lease=the_lease,
        missing=_missing(spec, the_lease),
        held=bool(held),
        listed=listed,
        unpublished=intent.unpublished,
        claim_deleted=backend.is_claim_deleted(spec, snapshot),
        leaving_until=evict_at,
        start_by=None if backend.quota(spec) else start_by,
        start_reason=intent.reason if intent.reason in FAILED_STARTS else "",
        start_message=intent.message if intent.reason in FAILED_STARTS else "",
    )
    return ObservedAllocation(
        facts=facts,
        lease=the_lease,
        held=held,
        occupied=occupied,
        users=pods,
        queues=queues,
        is_granted=is_granted,
        is_usable=is_granted and hold_quota.is_shown(spec, snapshot) and is_held_open,
        keeps_quota=is_granted or (hold_quota.is_listed(spec, snapshot) and in_use),
        start_by=start_by,
        evict_at=evict_at,
        snapshot=snapshot,
    )


def _missing(spec: ResolvedSpec, the_lease: LeaseFacts) -> str:
    """Return what must be free for the lease's quota, such as ``1 more GPU``; "" if it is not known, or for a claim,
    which has no slices.
    """
    if spec.claim_spec is not None:
        return ""
    count = reasons.missing_slices(the_lease.pending_message, spec.requests)
    return reasons.more(count, "GPU" if spec.kind == "whole" else "slice")


def _evict_at(the_lease: LeaseFacts, occupied: bool, deadlines: Deadlines) -> datetime | None:
    """Return when an evicted hold must be released: after the grace period if slices are held, else at once.

    A lease that was deleted and created again while its slices are held gets the same period to be admitted again.
    """
    if the_lease.evicted_at is not None:
        return the_lease.evicted_at + deadlines.grace if occupied else the_lease.evicted_at
    if occupied and not the_lease.admitted and the_lease.created_at is not None:
        return the_lease.created_at + deadlines.grace
    return None


def is_listed(spec: ResolvedSpec, snapshot: Snapshot) -> bool:
    """Return whether the project's guard admits pods of the allocation."""
    guard = snapshot.get(Ref("GpuProject", spec.namespace, names.GUARD))
    return guard is not None and spec.name in gpu_project_facts(guard).get("allocations", ())


def charged(spec: ResolvedSpec, snapshot: Snapshot) -> tuple[Slice, ...]:
    """Return the slices that are charged: all once they are held, and whatever is occupied while pods are admitted."""
    backend = registry.backend_of(spec)
    return backend.held(spec, snapshot) or (backend.occupied(spec, snapshot) if is_listed(spec, snapshot) else ())


def shared(spec: ResolvedSpec, snapshot: Snapshot) -> Shared:
    """Return which of the namespace's shared objects have the allocation."""
    return Shared(is_listed(spec, snapshot), hold_quota.is_listed(spec, snapshot))


def needs_project(spec: ResolvedSpec, state: ObservedAllocation, snapshot: Snapshot) -> bool:
    """Return whether the namespace's shared objects must change for this allocation: the guard, or a hold quota that
    was written before.
    """
    if is_listed(spec, snapshot) != state.is_usable:
        return True
    if not state.keeps_quota:
        return hold_quota.is_listed(spec, snapshot)
    amounts = registry.backend_of(spec).quota(spec)
    return not (needs_quota(spec, state, snapshot) or hold_quota.is_complete(spec, amounts, snapshot))


def needs_quota(spec: ResolvedSpec, state: ObservedAllocation, snapshot: Snapshot) -> bool:
    """Return whether the allocation's own hold quota must be written for the first time, and no quota besides."""
    return state.keeps_quota and not hold_quota.is_listed(spec, snapshot)


def desired_state(
    spec: ResolvedSpec,
    state: ObservedAllocation,
    snapshot: Snapshot,
    applied: Mapping[Ref, Applied],
    *,
    is_blocked: bool = False,
) -> DesiredState:
    """Return the objects that an allocation should have now, those that it should not have, and its lease's status.

    If it ``is_blocked``, its claims must not reach the scheduler.
    """
    backend = registry.backend_of(spec)
    leftovers = [list(state.users), *backend.leftovers(spec)]
    the_lease = lease.build(spec)
    if not state.queues:
        # The lease is deleted last, once the slices are observed free: until then its quota stays reserved.
        last = [] if state.occupied else [[lease.ref(spec)]]
        return DesiredState(unwanted=[*leftovers, *last])
    if state.is_granted and is_blocked:
        return DesiredState(objects=[the_lease], unwanted=leftovers)
    if state.is_granted:
        unwanted = [list(state.users)] if state.facts.claim_deleted else []
        if state.facts.claim_deleted:
            unwanted += backend.leftovers(spec)[:1]
        else:
            unwanted += backend.outdated(spec, snapshot)
        return DesiredState(
            objects=[the_lease, *backend.objects(spec, snapshot)],
            unwanted=unwanted,
            status=_pods_ready(spec, state, snapshot, applied),
        )
    is_clear = (
        not state.users
        and not state.occupied
        and nothing_left([ref for group in backend.leftovers(spec) for ref in group], snapshot, applied)
    )
    if state.lease.reserved and state.lease.evicted_at is not None and is_clear:
        release = ReleaseReservation(lease.ref(spec), state.lease.evicted_reason, state.lease.evicted_message)
        return DesiredState(objects=[the_lease], status=[release])
    return DesiredState(objects=[the_lease], unwanted=leftovers)


def _pods_ready(
    spec: ResolvedSpec, state: ObservedAllocation, snapshot: Snapshot, applied: Mapping[Ref, Applied]
) -> list[SetPodsReady | ReleaseReservation]:
    observed, written = snapshot.get(lease.ref(spec)), applied.get(lease.status_ref(spec))
    ready = bool(state.held)
    if observed is None or not state.lease.reserved or state.lease.pods_ready == ready:
        return []
    is_written = written is not None and written.uid == observed.uid
    if written is not None and is_written and not snapshot.is_observed_since(observed.ref, written.resource_version):
        return []
    return [
        SetPodsReady(lease.ref(spec), ready, "The slices are assigned." if ready else "The slices are not assigned.")
    ]


def manifests(spec: ResolvedSpec) -> list[Manifest]:
    """Return the objects of an allocation that is admitted and of which nothing is observed yet."""
    return [lease.build(spec), *registry.backend_of(spec).objects(spec, Snapshot())]


def wake_at(spec: ResolvedSpec, intent: Intent, state: ObservedAllocation) -> datetime | None:
    """Return when to reconcile again if nothing changes, or None."""
    now = state.facts.now
    if intent.released:
        # Changes of a pod with its class and another label do not enqueue the allocation.
        if is_class_used(spec, state.snapshot):
            return now + RECHECK_AFTER
        return None if state.facts.nothing_left else now + RELEASED_RECHECK_AFTER
    if intent.due_at is not None and intent.due_at <= now:
        return now
    moments = [spec.starts_at, intent.not_before, intent.due_at, state.start_by, state.evict_at]
    if intent.number_wait:
        moments.append(now + NUMBER_RETRY)
    return min((moment for moment in moments if moment is not None and moment > now), default=None)
