"""From tenants' own queued Jobs to the ledger: what each pod uses, and what is reserved beside it.

A Job is charged from its admission until Kueue gave its quota back, as a hold is. A pod that is bound takes GPUs of its
node until the cluster shows it finished or gone, also while it ends after the quota went back: that is its interval,
the ``allocation`` of it the Job's uid. By DRA the scheduler makes a claim for the pod: each device that it was given is
an interval in the device's own slot, until the claim has it no more. What is reserved and used by no pod is charged by
``job_reservations``. No object says who made the Job: the member stays empty.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid5

import structlog
from django.db import transaction
from django.db.models import QuerySet

from allocations.cluster.kinds import Observation
from allocations.domain.objects import has_finished
from allocations.models import MirrorObject
from allocations.reconcile.metering import job_reservations as reservations
from allocations.reconcile.metering import job_usage as uses
from allocations.reconcile.metering.attribution import attribution
from allocations.reconcile.metering.job_reservations import Account
from allocations.reconcile.metering.job_usage import PODS, Use, Wanted
from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)


def record(new: Observation, old: MirrorObject | None) -> None:
    """Bring the ledger along with one change, already in the mirror: of a pod, of the claim that was made for one, or
    of the workload that makes their Job known as queued (whichever is seen last)."""
    if new.ref.kind == "Pod":
        _record_pod(new, old)
    elif new.ref.kind == "ResourceClaim":
        _record_claim(new, old)
    elif new.ref.kind == "Workload":
        _record_workload(new, old)


def repair(metered: Collection[str]) -> bool:
    """Bring the ledger to what the mirror shows of all Jobs; whether anything differed.

    That is what could not be charged yet, since the flavor of a pod's node was not known when it was bound, and what
    nobody recorded. ``metered``: uids of the pods and claims that the ledger has.
    """
    pods = {row.uid: row for row in MirrorObject.objects.filter(kind="Pod", allocation="", facts__has_key="job")}
    claims = MirrorObject.objects.filter(kind="ResourceClaim", facts__has_key="pod")
    given = {claim.uid: claim.facts["pod"] for claim in claims if claim.facts["devices"]}
    bound = {uid for uid, pod in pods.items() if uses.is_bound(pod.facts)}
    missing = (bound | {pod for claim, pod in given.items() if claim not in metered}) - set(metered)
    jobs = {(pods[uid].namespace, pods[uid].facts["job"]) for uid in missing if uid in pods}
    differing = _charged(jobs) | reservations.differing()
    lost = set(metered) - bound - given.keys()
    gone = [rows for uid in lost for rows in (_of_pod(uid), _of_claim(uid))]
    repaired = sum(_end(rows, clock.now(), {"kind": "none"}, estimated=True) for rows in gone)
    for namespace, job in sorted(differing):
        with transaction.atomic(), _locked(job):
            repaired += _repair(namespace, job, at=clock.now())
    return repaired > 0


def _charged(jobs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the Jobs whose pods are charged (``Account.is_queued``); two queries."""
    queued = MirrorObject.objects.filter(kind="Workload", facts__job__uid__in=[job for _, job in jobs])
    known = UsageInterval.objects.filter(allocation__in=[job for _, job in jobs]).values_list("allocation", flat=True)
    there = {*queued.values_list("facts__job__uid", flat=True), *map(str, known.order_by().distinct())}
    return {one for one in jobs if one[1] in there}


def metered() -> set[str]:
    """Uids of the pods and claims whose GPUs are in the ledger now: what they use is held, and no foreign use."""
    open_now = UsageInterval.objects.filter(end=None, member="", unused=False)
    slots = open_now.filter(slot__startswith=PODS).values_list("slot", flat=True)
    claims = open_now.filter(source_start__kind="ResourceClaim").values_list("source_start__uid", flat=True)
    return {slot.removeprefix(PODS).partition("/")[0] for slot in slots} | set(claims)


def _record_pod(new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old else {}
    if old and was.get("job") and (new.gone or new.uid != old.uid or has_finished(facts)):
        with _locked(was["job"]):
            _end_of(new, was["job"], _of_pod(old.uid))
    if not new.gone and facts.get("job"):
        was_bound = old is not None and old.uid == new.uid and bool(was.get("node"))
        with _locked(facts["job"]):
            missing = _unmetered(new.ref.namespace, facts["job"], name=new.ref.name)
            _begin_of(new, facts["job"], missing, watched=() if was_bound else (new.uid,))


def _record_claim(new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old else {}
    if not (facts.get("pod") or was.get("pod")):
        return
    now = set() if new.gone or old is None or old.uid != new.uid else _given(facts)
    ended = [slot for slot, at in _given(was) - now]
    if old and ended:
        rows = _of_claim(old.uid).filter(slot__in=ended)
        for job in set(rows.values_list("allocation", flat=True)):
            with _locked(str(job)):
                _end_of(new, str(job), rows.filter(allocation=job))
    if not new.gone and facts["devices"]:
        pods = MirrorObject.objects.filter(kind="Pod", namespace=new.ref.namespace, uid=facts.get("pod", ""))
        for name, job in pods.values_list("name", "facts__job"):
            with _locked(job or ""):
                missing = _unmetered(new.ref.namespace, job, name=name) if job else []
                _begin_of(new, job, missing, watched=() if _given(was) & _given(facts) else (new.uid,))


def _record_workload(new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old and old.uid == new.uid else {}
    before = reservations.reservation(was) if was else reservations.NONE
    now = reservations.NONE if new.gone else reservations.reservation(facts)
    job = (facts.get("job") or (old.facts.get("job") if old else None) or {}).get("uid")
    if not job or (was and not new.gone and before == now):
        return
    with _locked(job):
        account = reservations.account(new.ref.namespace, job)
        if account is None:
            return
        missing = [] if new.gone else _unmetered(new.ref.namespace, job)
        has_begun = now.since != before.since or not before.usage
        _charge(account, missing, new, has_begun=has_begun)


def _charge(account: Account, missing: Collection[Wanted], new: Observation, *, has_begun: bool) -> None:
    """Bring the account along with its workload. A reservation that began unseen is charged from when the cluster says;
    what was charged before it ends with the last sighting. Pods that were bound before are charged for themselves."""
    evidence, estimated = _evidence(new), not new.live
    start, early = new.at, list[Wanted]()
    if has_begun:
        unseen = _unseen_start(account, new.at)
        reservations.end_all(account, new.at, evidence, estimated=estimated)
        start = unseen if estimated else new.at
        early = [one for one in missing if (one.since or start) <= start]
        _begin(account, early, at=new.at, beside=False)
    reservations.charge(account, start, evidence, estimated=estimated)
    _begin(account, [one for one in missing if one not in early], at=new.at)


def _unseen_start(account: Account, at: datetime) -> datetime:
    """When a reservation that nobody saw begin is charged from: as the cluster says; now, where the ledger has a change
    or an end after that, since then it had ended and is there again (etcd came back from a backup)."""
    since = account.since or at
    after = [moment for moment in (*account.changed.values(), account.ended) if moment is not None and moment > since]
    return clock.now() if after else since


def _repair(namespace: str, job: str, *, at: datetime) -> int:
    account = reservations.account(namespace, job)
    if account is None:
        return 0
    evidence = {"kind": "none", "name": "", "uid": "", "resource_version": ""}
    new = account.reserved.keys() - account.known
    begun = reservations.charge(account, account.since or at, evidence, estimated=True, only=new)
    opened = _begin(account, _unmetered(namespace, job), at=at) if account.is_queued else 0
    return opened + begun + reservations.charge(account, at, evidence, estimated=True)


@contextmanager
def _locked(job: str) -> Iterator[None]:
    """The watcher and a repair never write of one Job at once; each then sees what the other wrote."""
    with advisory_lock("job-ledger", job):
        yield


def _evidence(new: Observation) -> dict[str, str]:
    revision = "gone" if new.gone else str(new.resource_version)
    return {"kind": new.ref.kind, "name": new.ref.name, "uid": new.uid, "resource_version": revision}


def _given(claim: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Slots of the devices that the claim was given, each with when."""
    return {(uses.slot_of(device), claim["allocated_at"]) for device in claim.get("devices", ())}


def _of_pod(uid: str) -> QuerySet[UsageInterval]:
    """What is open of a pod by device plugin."""
    return UsageInterval.objects.filter(end=None, slot__startswith=f"{PODS}{uid}/")


def _of_claim(uid: str) -> QuerySet[UsageInterval]:
    """What is open of a claim that was made for a pod."""
    shown = {"source_start__kind": "ResourceClaim", "source_start__uid": uid}
    return UsageInterval.objects.filter(end=None, member="", unused=False, **shown)


def _end(rows: QuerySet[UsageInterval], at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> int:
    keys = list(rows.values_list("key", flat=True))
    return sum(metering.close_interval(key, at, evidence, estimated=estimated) is not None for key in keys)


def _end_of(new: Observation, job: str, rows: QuerySet[UsageInterval]) -> None:
    evidence, estimated = _evidence(new), not new.live
    ended = _end(rows, new.at, evidence, estimated=estimated)
    if ended and (account := reservations.account(new.ref.namespace, job)):
        reservations.charge(account, new.at, evidence, estimated=estimated)


def _unmetered(namespace: str, job: str, **only: str) -> list[Wanted]:
    """What the Job's pods use and the ledger lacks. What has ended there and is used is there again (etcd came back
    from a backup): it begins now, under its next key."""
    rows = MirrorObject.objects.filter(kind="Pod", namespace=namespace, allocation="", facts__job=job, **only)
    pods = list(rows)
    claims = _claims(namespace, [pod for pod in pods if not uses.is_bound(pod.facts)])
    found = [*uses.of_pods(job, pods), *uses.of_claims(job, claims)]
    missing: list[Wanted] = []
    while found:
        ends = dict(UsageInterval.objects.filter(key__in=[one.key for one in found]).values_list("key", "end"))
        missing += [one for one in found if one.key not in ends]
        ended = [(one, end) for one in found if (end := ends.get(one.key))]
        found = [replace(one, key=uuid5(one.key, f"{end:%FT%T.%f}"), since=clock.now()) for one, end in ended]
    return missing


def _claims(namespace: str, pods: Collection[MirrorObject]) -> list[MirrorObject]:
    """The claims that the scheduler made for these pods; a pod that names one has no other."""
    if not pods:
        return []
    named = {pod.uid: pod.facts.get("extended_claim", "") for pod in pods}
    rows = MirrorObject.objects.filter(kind="ResourceClaim", namespace=namespace, facts__pod__in=list(named))
    return [claim for claim in rows if named[claim.facts["pod"]] in ("", claim.name)]


def _begin_of(new: Observation, job: str, missing: Collection[Wanted], *, watched: Collection[str]) -> None:
    account = reservations.account(new.ref.namespace, job) if missing else None
    if account is not None and account.is_queued:
        _begin(account, missing, at=new.at, watched=watched if new.live else ())


def _begin(
    account: Account,
    missing: Collection[Wanted],
    *,
    at: datetime,
    watched: Collection[str] = (),
    beside: bool = True,
) -> int:
    """Open what is used: from ``at`` where its beginning was ``watched`` (uids), else from when the cluster says, and
    no earlier than the Job's unused part last changed; with ``beside`` that part changes as they begin. Returns how
    many were opened."""
    opened = 0
    begins: dict[datetime, list[Use]] = defaultdict(list)
    for one in uses.resolve(list(missing)):
        since = at if one.evidence["uid"] in watched or one.since is None else one.since
        begins[max(since, account.changed.get(one.offering.key, since))].append(one)
    for start, together in sorted(begins.items()):
        count = sum(_open(account, one, start, estimated=one.evidence["uid"] not in watched) for one in together)
        opened += count
        if beside and count:
            evidence, touched = together[-1].evidence, {one.offering.key for one in together}
            estimated = evidence["uid"] not in watched
            reservations.charge(account, start, evidence, estimated=estimated, only=touched)
    return opened


def _open(account: Account, use: Use, start: datetime, *, estimated: bool) -> bool:
    """Open one interval; False while another holder's interval on the same device is still open."""
    more = {"node": use.node, "device_uuid": use.device_uuid}
    held = attribution(account.project, use.offering, use.offering.gpu_share, member="", **more)
    evidence = {**use.evidence, "job": account.name}
    try:
        metering.open_interval(use.key, account.job, use.slot, start, held, use.count, evidence, estimated=estimated)
    except SlotHeld as error:
        log.warning("job.slot_held", error=str(error))
        return False
    account.used[use.offering.key] += use.count
    return True
