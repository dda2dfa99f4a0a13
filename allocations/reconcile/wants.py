"""What an allocation should have on the cluster at this moment, from what was asked and what is seen. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from allocations.cluster import names
from allocations.cluster.manifests import device_plugin, lease, paths
from allocations.reconcile.facts import Applied, Ref, Request, Slice, View
from allocations.reconcile.plan import ReleaseReservation, SetPodsReady, Wanted, nothing_left
from allocations.states import FAILED_STARTS, Facts, LeaseFacts, Phase

FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Intent:
    """What people and deadlines decided, as the row has it."""

    released: bool = False
    not_before: datetime | None = None
    asks_owner: bool = False
    phase: str = Phase.QUEUED
    phase_since: datetime | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Deadlines:
    start: timedelta
    grace: timedelta


@dataclass(frozen=True)
class Situation:
    """The allocation on the cluster, as everything else here needs it."""

    facts: Facts
    lease: LeaseFacts
    held: tuple[Slice, ...]
    occupied: tuple[Slice, ...]
    users: tuple[Ref, ...]
    queues: bool
    """Whether it is to have a lease now: nobody released it, and nothing has to be waited for first."""
    is_granted: bool
    """Whether tenants' pods may use it: its entry stands in the project's guard."""
    keeps_quota: bool
    """Whether its slices count in the hold quota of its flavor: as long as a pod of it is there."""
    start_by: datetime | None
    evict_at: datetime | None
    view: View

    def revision(self, ref: Ref) -> str:
        """The resourceVersion at which the object was seen, as Kubernetes writes it; empty when it was not."""
        seen = self.view.get(ref)
        return str(seen.resource_version) if seen else ""


def users(request: Request, view: View) -> tuple[Ref, ...]:
    """Tenants' pods of the allocation that could still use it."""
    own = set(own_refs(request))
    return tuple(
        seen.ref
        for seen in view.of("Pod", request.name)
        if seen.ref not in own and seen.facts.get("phase") not in FINISHED
    )


def own_refs(request: Request) -> list[Ref]:
    return [ref for group in paths.of(request).leftovers(request) for ref in group] + [lease.ref(request)]


def assess(
    request: Request,
    intent: Intent,
    view: View,
    applied: Mapping[Ref, Applied],
    now: datetime,
    deadlines: Deadlines,
) -> Situation:
    path = paths.of(request)
    the_lease = lease.read(view.get(lease.ref(request))) or LeaseFacts()
    held, occupied, pods = path.held(request, view), path.occupied(request, view), users(request, view)
    evict_at = _evict_at(the_lease, bool(occupied), deadlines)
    later = [moment for moment in (intent.not_before, request.starts_at) if moment is not None and moment > now]
    gives_back = intent.reason in FAILED_STARTS and bool(occupied)
    queues = not (intent.released or intent.asks_owner or later or gives_back)
    is_granted = queues and (the_lease.admitted or bool(occupied)) and (evict_at is None or evict_at > now)
    start_by = None
    if is_granted and not held and the_lease.admitted_at is not None:
        since = intent.phase_since if intent.phase == Phase.STARTING and intent.phase_since else now
        start_by = max(since, the_lease.admitted_at) + deadlines.start
    facts = Facts(
        now=now,
        released=intent.released,
        nothing_left=not pods and not occupied and nothing_left(own_refs(request), view, applied),
        starts_at=request.starts_at,
        not_before=intent.not_before,
        gives_back=gives_back,
        asks_owner=intent.asks_owner,
        lease=the_lease,
        held=bool(held),
        claim_deleted=path.is_claim_deleted(request, view),
        leaving_until=evict_at,
        start_by=None if paths.of(request).quota(request) else start_by,
        start_reason=intent.reason if intent.reason in FAILED_STARTS else "",
        start_message=intent.message if intent.reason in FAILED_STARTS else "",
    )
    return Situation(
        facts=facts,
        lease=the_lease,
        held=held,
        occupied=occupied,
        users=pods,
        queues=queues,
        is_granted=is_granted,
        keeps_quota=is_granted or (in_quota(request, view) and bool(pods)),
        start_by=start_by,
        evict_at=evict_at,
        view=view,
    )


def _evict_at(the_lease: LeaseFacts, occupied: bool, deadlines: Deadlines) -> datetime | None:
    """When an evicted hold is taken back: after the notice where something is held, at once where nothing is.

    A lease that was deleted and made again while its slices are held gets the same time to be admitted again.
    """
    if the_lease.evicted_at is not None:
        return the_lease.evicted_at + deadlines.grace if occupied else the_lease.evicted_at
    if occupied and not the_lease.admitted and the_lease.created_at is not None:
        return the_lease.created_at + deadlines.grace
    return None


def is_listed(request: Request, view: View) -> bool:
    """Whether the project's guard lets pods of the allocation in."""
    guard = view.get(Ref("GpuProject", request.namespace, names.GUARD))
    return guard is not None and request.name in guard.facts.get("allocations", ())


def in_quota(request: Request, view: View) -> bool:
    quota = view.get(device_plugin.quota_ref(request))
    return quota is not None and request.name in quota.facts.get("slices", {})


def needs_project(request: Request, situation: Situation, view: View) -> bool:
    """Whether the namespace's shared objects (guard, hold quotas) must change on behalf of this allocation."""
    shares_quota = bool(paths.of(request).quota(request))
    return is_listed(request, view) != situation.is_granted or (
        shares_quota and in_quota(request, view) != situation.keeps_quota
    )


def status_ref(request: Request) -> Ref:
    """Where the answer to our last status write is remembered, so that one in flight is not written twice."""
    return Ref("Workload/status", request.namespace, names.lease(request.name))


def wanted(request: Request, situation: Situation, view: View, applied: Mapping[Ref, Applied]) -> Wanted:
    """The objects that should be, those that should not in the order in which they go, and what Kueue is told."""
    path = paths.of(request)
    taking_back = [list(situation.users), *path.leftovers(request)]
    the_lease = lease.build(request)
    if not situation.queues:
        # The lease goes last, and only when the slices are seen free: quota comes back on evidence.
        last = [] if situation.occupied else [[lease.ref(request)]]
        return Wanted(unwanted=[*taking_back, *last])
    if situation.is_granted:
        going = [list(situation.users)] if situation.facts.claim_deleted else []
        if situation.facts.claim_deleted:
            going += path.leftovers(request)[:1]
        else:
            going += path.outdated(request, view)
        return Wanted(
            objects=[the_lease, *path.objects(request, view)],
            unwanted=going,
            status=_pods_ready(request, situation, view, applied),
        )
    clear = (
        not situation.users
        and not situation.occupied
        and nothing_left([ref for group in path.leftovers(request) for ref in group], view, applied)
    )
    if situation.lease.reserved and situation.lease.evicted_at is not None and clear:
        release = ReleaseReservation(
            lease.ref(request), situation.lease.evicted_reason, situation.lease.evicted_message
        )
        return Wanted(objects=[the_lease], status=[release])
    return Wanted(objects=[the_lease], unwanted=taking_back)


def _pods_ready(
    request: Request, situation: Situation, view: View, applied: Mapping[Ref, Applied]
) -> list[SetPodsReady | ReleaseReservation]:
    seen, written = view.get(lease.ref(request)), applied.get(status_ref(request))
    ready = bool(situation.held)
    if seen is None or not situation.lease.reserved or situation.lease.pods_ready == ready:
        return []
    if written is not None and written.uid == seen.uid and seen.resource_version < written.resource_version:
        return []
    return [SetPodsReady(lease.ref(request), ready, "The slices are held." if ready else "The slices are not held.")]


def wake_at(request: Request, intent: Intent, situation: Situation) -> datetime | None:
    """The next moment at which time alone changes something."""
    now = situation.facts.now
    if intent.released:
        return None
    moments = [request.starts_at, intent.not_before, request.ends_at, situation.start_by, situation.evict_at]
    return min((moment for moment in moments if moment is not None and moment > now), default=None)
