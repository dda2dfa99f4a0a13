"""Charges tenants' own queued Jobs in the ledger, for what their pods use; the unused rest is in ``job_reservations``.

A Job is charged from its admission until Kueue releases its quota, as a hold is. ``holder_id`` is the Job's uid; the
member is empty, since no object has the Job's creator.

- Device plugin: a bound pod is one interval for each resource until it is observed finished or gone, even if Kueue has
  released the quota before.
- DRA: the scheduler creates a claim for the pod. Each device allocated to it is an interval in the device's own slot,
  until the claim no longer has the device.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid5

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from allocations.cluster.kinds import Observation
from allocations.domain.objects import Snapshot, has_finished
from allocations.domain.observed_facts import ResourceClaimFacts, claim_facts, pod_facts, workload_facts
from allocations.models import MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.metering import job_reservations as reservations
from allocations.reconcile.metering import job_usage as uses
from allocations.reconcile.metering import pod_ends
from allocations.reconcile.metering.attribution import attribution
from allocations.reconcile.metering.job_reservations import Account
from allocations.reconcile.metering.job_usage import UnresolvedUse, Use
from allocations.reconcile.recorder import Recorder, Seen
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.core.reading import Columns
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)
METERED = ("slot", "source_start", "flavor")


def concerns(new: Observation, old: MirrorObject | None) -> bool:
    """Return whether the object is or was a Job's: its pod, the claim made for one, or its Workload."""
    if new.ref.kind == "ResourceClaim":
        return any(claim_facts(form).get("pod") for form in (new, old))
    return any(pod_facts(form).get("job") or workload_facts(form).get("job") for form in (new, old))


def _each(batch: BatchState, seen: Seen) -> None:
    """Update the ledger for one change, once it is in the mirror of the cluster.

    A pod, the claim made for it, and the Workload of their Job may be observed in any order.
    """
    cluster, new, old = batch.cluster, seen.change.new, seen.change.old
    if not concerns(new, old):
        return
    batch.write()
    if new.ref.kind == "Pod":
        _record_pod(cluster, new, old)
    elif new.ref.kind == "ResourceClaim":
        _record_claim(cluster, new, old)
    elif new.ref.kind == "Workload":
        _record_workload(cluster, new, old)


def repair_all(cluster: str, metered: Collection[str]) -> bool:
    """Make the ledger of all Jobs of a cluster agree with the mirror; return whether anything differed.

    ``metered`` are the uids of the pods and claims that the ledger charges.
    """
    of_jobs = Q(kind="Pod", allocation="", facts__has_key="job") | Q(kind="ResourceClaim", facts__has_key="pod")
    rows = MirrorObject.objects.filter(of_jobs, cluster=cluster)
    snapshot = Snapshot(map(mirror.observed_object, rows))
    return repair(cluster, snapshot, metered, reservations.differing_jobs(cluster))


def repair(
    cluster: str, snapshot: Snapshot, metered: Collection[str], differing: Collection[tuple[str, str]] = ()
) -> bool:
    """Make the ledger agree with these pods and claims; return whether anything differed.

    This charges use that was missed, or whose node had no flavor when the pod was bound. ``metered`` are the uids that
    the ledger charges of those that the snapshot would have, ``differing`` Jobs to repair besides, by namespace and
    uid. Two queries for the Jobs whose pods are not charged, and none if there are none.
    """
    pods = {pod.uid: pod for pod in snapshot.of_kind("Pod", "") if pod_facts(pod).get("job")}
    claims = [claim for claim in snapshot.of_kind("ResourceClaim") if claim_facts(claim).get("pod")]
    pod_of_claim = {claim.uid: claim_facts(claim)["pod"] for claim in claims if claim_facts(claim)["devices"]}
    bound = {uid for uid, pod in pods.items() if uses.is_bound(pod_facts(pod))}
    missing = (bound | {pod for claim, pod in pod_of_claim.items() if claim not in metered}) - set(metered)
    jobs = {(pods[uid].ref.namespace, pod_facts(pods[uid])["job"]) for uid in missing if uid in pods}
    differing = {*differing, *(_queued(cluster, jobs) if jobs else ())}
    unseen = set(metered) - bound - pod_of_claim.keys()
    stale = [rows for uid in unseen for rows in (_open_of_pod(cluster, uid), _open_of_claim(cluster, uid))]
    repaired = sum(_close(rows, clock.now(), {"kind": "none"}, estimated=True) for rows in stale)
    for namespace, job in sorted(differing):
        with transaction.atomic(), _locked(cluster, job):
            repaired += _repair(cluster, namespace, job, at=clock.now())
    return repaired > 0


def _queued(cluster: str, jobs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the Jobs whose pods are charged (``Account.is_queued``); two queries."""
    uids = [job for _, job in jobs]
    queued = MirrorObject.objects.filter(cluster=cluster, kind="Workload", facts__job__uid__in=uids)
    charged = UsageInterval.objects.filter(cluster=cluster, holder_id__in=uids).values_list("holder_id", flat=True)
    found = {*queued.values_list("facts__job__uid", flat=True), *map(str, charged.order_by().distinct())}
    return {one for one in jobs if one[1] in found}


def metered(cluster: str) -> dict[str, str]:
    """Return the uids of the pods and claims of a cluster that are charged now, each with the flavor that it is charged
    for; their use of that is not foreign use.
    """
    rows, columns = part_of_metered(cluster)
    return metered_of(cluster, rows.values_list(*columns))


def part_of_metered(cluster: str, nodes: Collection[str] | None = None) -> Columns:
    """Return what to read for ``metered_of`` (``portal.core.reading``), of all nodes or those given."""
    rows = UsageInterval.objects.filter(cluster=cluster, end=None, member="", unused=False)
    is_use = Q(slot__startswith=uses.pod_slot_prefix(cluster)) | Q(source_start__kind="ResourceClaim")
    return Columns(rows.filter(is_use) if nodes is None else rows.filter(is_use, node__in=nodes), METERED)


def metered_of(cluster: str, values: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return the uids of the pods and claims with their flavors from what was read of ``part_of_metered``."""
    pods = uses.pod_slot_prefix(cluster)
    return {
        slot.removeprefix(pods).partition("/")[0] if slot.startswith(pods) else source["uid"]: flavor
        for slot, source, flavor in values
    }


def _record_pod(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, old_facts = pod_facts(new), pod_facts(old)
    if old and old_facts.get("job") and (new.gone or new.uid != old.uid or has_finished(facts)):
        finished_at = pod_ends.finished_at(new, old)
        with _locked(cluster, old_facts["job"]):
            _close_of_job(cluster, new, old_facts["job"], _open_of_pod(cluster, old.uid), finished_at)
    if not new.gone and facts.get("job"):
        was_bound = old is not None and old.uid == new.uid and bool(old_facts.get("node"))
        with _locked(cluster, facts["job"]):
            missing = _unmetered(cluster, new.ref.namespace, facts["job"], name=new.ref.name)
            _open_of_job(cluster, new, facts["job"], missing, watched=() if was_bound else (new.uid,))


def _record_claim(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, old_facts = claim_facts(new), claim_facts(old)
    if not (facts.get("pod") or old_facts.get("pod")):
        return
    current = set() if new.gone or old is None or old.uid != new.uid else _allocated_slots(cluster, facts)
    ended = [slot for slot, at in _allocated_slots(cluster, old_facts) - current]
    if old and ended:
        rows = _open_of_claim(cluster, old.uid).filter(slot__in=ended)
        for job in set(rows.values_list("holder_id", flat=True)):
            with _locked(cluster, str(job)):
                _close_of_job(cluster, new, str(job), rows.filter(holder_id=job))
    if not new.gone and facts["devices"]:
        pods = MirrorObject.objects.filter(cluster=cluster, kind="Pod", namespace=new.ref.namespace)
        kept = _allocated_slots(cluster, old_facts) & _allocated_slots(cluster, facts)
        for name, job in pods.filter(uid=facts.get("pod", "")).values_list("name", "facts__job"):
            with _locked(cluster, job or ""):
                missing = _unmetered(cluster, new.ref.namespace, job, name=name) if job else []
                _open_of_job(cluster, new, job, missing, watched=() if kept else (new.uid,))


def _record_workload(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, old_facts = workload_facts(new), workload_facts(old if old and old.uid == new.uid else None)
    before = reservations.reservation(old_facts) if old_facts else reservations.NO_RESERVATION
    now = reservations.NO_RESERVATION if new.gone else reservations.reservation(facts)
    owner = facts.get("job") or workload_facts(old).get("job")
    if not owner or (old_facts and not new.gone and before == now):
        return
    job = owner["uid"]
    with _locked(cluster, job):
        account = reservations.read_account(cluster, new.ref.namespace, job)
        if account is None:
            return
        missing = [] if new.gone else _unmetered(cluster, new.ref.namespace, job)
        is_new = now.since != before.since or not before.usage
        _charge(account, missing, new, is_new=is_new)


def _charge(account: Account, missing: Collection[UnresolvedUse], new: Observation, *, is_new: bool) -> None:
    """Update the ledger of a Job after a change of its Workload.

    A new reservation (``is_new``) that was not watched is charged from the time that the cluster has for it; what was
    charged before is closed at the last observation. Pods bound before the reservation have intervals of their own.
    """
    evidence, estimated = uses.evidence_of_change(new), not new.live
    start, early = new.at, list[UnresolvedUse]()
    if is_new:
        unwatched_start = _unwatched_start(account, new.at)
        reservations.close_all(account, new.at, evidence, estimated=estimated)
        start = unwatched_start if estimated else new.at
        early = [one for one in missing if (one.since or start) <= start]
        _open_uses(account, early, at=new.at, update_unused=False)
    reservations.charge(account, start, evidence, estimated=estimated)
    _open_uses(account, [one for one in missing if one not in early], at=new.at)


def _unwatched_start(account: Account, at: datetime) -> datetime:
    """Return the start of a reservation that was not watched: the time that the cluster has for it.

    Now, if the ledger has a change or an end after that time: then the reservation had ended and exists again, since
    etcd was restored from a backup.
    """
    since = account.since or at
    later = [moment for moment in (*account.changed.values(), account.ended) if moment is not None and moment > since]
    return clock.now() if later else since


def _repair(cluster: str, namespace: str, job: str, *, at: datetime) -> int:
    account = reservations.read_account(cluster, namespace, job)
    if account is None:
        return 0
    evidence = {"kind": "none", "name": "", "uid": "", "resource_version": ""}
    new = account.reserved.keys() - account.charged
    charged = reservations.charge(account, account.since or at, evidence, estimated=True, only=new)
    opened = _open_uses(account, _unmetered(cluster, namespace, job), at=at) if account.is_queued else 0
    return opened + charged + reservations.charge(account, at, evidence, estimated=True)


@contextmanager
def _locked(cluster: str, job: str) -> Iterator[None]:
    """Hold the lock of a Job's ledger, so that the watcher and a repair do not write it at the same time."""
    with advisory_lock("job-ledger", cluster, job):
        yield


def _allocated_slots(cluster: str, claim: ResourceClaimFacts) -> set[tuple[str, str]]:
    """Return the slots of the devices allocated to a claim, each with the time of the allocation."""
    return {(uses.device_slot(cluster, device), claim["allocated_at"]) for device in claim.get("devices", ())}


def _open_of_pod(cluster: str, uid: str) -> QuerySet[UsageInterval]:
    """Return the open intervals of a pod with device plugin resources."""
    return UsageInterval.objects.filter(end=None, slot__startswith=f"{uses.pod_slot_prefix(cluster)}{uid}/")


def _open_of_claim(cluster: str, uid: str) -> QuerySet[UsageInterval]:
    """Return the open intervals of a claim that was made for a pod."""
    source = {"source_start__kind": "ResourceClaim", "source_start__uid": uid}
    return UsageInterval.objects.filter(cluster=cluster, end=None, member="", unused=False, **source)


def _close(rows: QuerySet[UsageInterval], at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> int:
    keys = list(rows.values_list("key", flat=True))
    return sum(metering.close_interval(key, at, evidence, estimated=estimated) is not None for key in keys)


def _close_of_job(
    cluster: str, new: Observation, job: str, rows: QuerySet[UsageInterval], finished_at: datetime | None = None
) -> None:
    """Close the intervals, and charge the unused rest from there on. An end that nobody saw is what the pod says."""
    evidence, estimated, at = uses.evidence_of_change(new), not (new.live or finished_at), finished_at or new.at
    ended = _close(rows, at, evidence, estimated=estimated)
    if ended and (account := reservations.read_account(cluster, new.ref.namespace, job)):
        reservations.charge(account, at, evidence, estimated=estimated)


def _unmetered(cluster: str, namespace: str, job: str, **only: str) -> list[UnresolvedUse]:
    """Return the use of the Job's pods that the ledger lacks.

    A use whose interval was closed starts now, under its next key: etcd was restored from a backup.
    """
    objects = MirrorObject.objects.filter(cluster=cluster, namespace=namespace)
    pods = list(objects.filter(kind="Pod", allocation="", facts__job=job, **only))
    claims = _claims(objects, [pod for pod in pods if not uses.is_bound(pod_facts(pod))])
    found = [*uses.pod_uses(job, pods), *uses.claim_uses(job, claims)]
    missing: list[UnresolvedUse] = []
    while found:
        ends = dict(UsageInterval.objects.filter(key__in=[one.key for one in found]).values_list("key", "end"))
        missing += [one for one in found if one.key not in ends]
        ended = [(one, end) for one in found if (end := ends.get(one.key))]
        found = [replace(one, key=uuid5(one.key, f"{end:%FT%T.%f}"), since=clock.now()) for one, end in ended]
    return missing


def _claims(objects: QuerySet[MirrorObject], pods: Collection[MirrorObject]) -> list[MirrorObject]:
    """Return the claims of a namespace that were made for these pods; if a pod's status names one, only that one."""
    if not pods:
        return []
    named = {pod.uid: pod_facts(pod).get("extended_claim", "") for pod in pods}
    rows = objects.filter(kind="ResourceClaim", facts__pod__in=list(named))
    return [claim for claim in rows if named[claim_facts(claim)["pod"]] in ("", claim.name)]


def _open_of_job(
    cluster: str, new: Observation, job: str, missing: Collection[UnresolvedUse], *, watched: Collection[str]
) -> None:
    account = reservations.read_account(cluster, new.ref.namespace, job) if missing else None
    if account is not None and account.is_queued:
        _open_uses(account, missing, at=new.at, watched=watched if new.live else ())


def _open_uses(
    account: Account,
    missing: Collection[UnresolvedUse],
    *,
    at: datetime,
    watched: Collection[str] = (),
    update_unused: bool = True,
) -> int:
    """Open an interval for each use; return how many were opened.

    It starts at ``at`` if its start was ``watched`` (uids), else at the time that the cluster has for it, but not
    before the last change of the Job's unused part. ``update_unused``: adjust that part at each start.
    """
    opened = 0
    by_start: dict[datetime, list[Use]] = defaultdict(list)
    for one in uses.resolve(account.project.cluster_id, list(missing)):
        since = at if one.evidence["uid"] in watched or one.since is None else one.since
        by_start[max(since, account.changed.get(one.offering.key, since))].append(one)
    for start, started in sorted(by_start.items()):
        count = sum(_open(account, one, start, estimated=one.evidence["uid"] not in watched) for one in started)
        opened += count
        if update_unused and count:
            evidence, offerings = started[-1].evidence, {one.offering.key for one in started}
            estimated = evidence["uid"] not in watched
            reservations.charge(account, start, evidence, estimated=estimated, only=offerings)
    return opened


def _open(account: Account, use: Use, start: datetime, *, estimated: bool) -> bool:
    """Open one interval; return False if another holder's interval on the device is still open."""
    more = {"node": use.node, "device_uuid": use.device_uuid, "labels": account.labels}
    holder = attribution(account.project, use.offering, use.offering.gpu_share, member="", **more)
    evidence = {**use.evidence, "job": account.name}
    try:
        metering.open_interval(use.key, account.job, use.slot, start, holder, use.count, evidence, estimated=estimated)
    except SlotHeld as error:
        log.warning("job.slot_held", error=str(error))
        return False
    account.used[use.offering.key] += use.count
    return True


RECORDER = Recorder(each=_each)
