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
from allocations.reconcile.metering.job_usage import UnresolvedUse, Use
from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

log = structlog.get_logger(__name__)


def record(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    """Update the ledger for one change that is already in the mirror of the cluster: of a pod, of the claim made for
    one, or of the workload that shows that their Job is queued (whichever is observed last).
    """
    if new.ref.kind == "Pod":
        _record_pod(cluster, new, old)
    elif new.ref.kind == "ResourceClaim":
        _record_claim(cluster, new, old)
    elif new.ref.kind == "Workload":
        _record_workload(cluster, new, old)


def repair(cluster: str, metered: Collection[str]) -> bool:
    """Bring the ledger of all Jobs of a cluster in line with the mirror; return whether anything differed.

    This covers use that could not be charged earlier, since the flavor of the pod's node was not known when it was
    bound, and use that nobody recorded. ``metered`` are the uids of the pods and claims that the ledger has.
    """
    seen = MirrorObject.objects.filter(cluster=cluster)
    pods = {row.uid: row for row in seen.filter(kind="Pod", allocation="", facts__has_key="job")}
    claims = seen.filter(kind="ResourceClaim", facts__has_key="pod")
    given = {claim.uid: claim.facts["pod"] for claim in claims if claim.facts["devices"]}
    bound = {uid for uid, pod in pods.items() if uses.is_bound(pod.facts)}
    missing = (bound | {pod for claim, pod in given.items() if claim not in metered}) - set(metered)
    jobs = {(pods[uid].namespace, pods[uid].facts["job"]) for uid in missing if uid in pods}
    differing = _charged(cluster, jobs) | reservations.differing(cluster)
    lost = set(metered) - bound - given.keys()
    gone = [rows for uid in lost for rows in (_of_pod(cluster, uid), _of_claim(cluster, uid))]
    repaired = sum(_end(rows, clock.now(), {"kind": "none"}, estimated=True) for rows in gone)
    for namespace, job in sorted(differing):
        with transaction.atomic(), _locked(cluster, job):
            repaired += _repair(cluster, namespace, job, at=clock.now())
    return repaired > 0


def _charged(cluster: str, jobs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the Jobs whose pods are charged (``Account.is_queued``); two queries."""
    uids = [job for _, job in jobs]
    queued = MirrorObject.objects.filter(cluster=cluster, kind="Workload", facts__job__uid__in=uids)
    known = UsageInterval.objects.filter(cluster=cluster, holder_id__in=uids).values_list("holder_id", flat=True)
    there = {*queued.values_list("facts__job__uid", flat=True), *map(str, known.order_by().distinct())}
    return {one for one in jobs if one[1] in there}


def metered(cluster: str) -> set[str]:
    """Return the uids of the pods and claims of a cluster whose GPUs are in the ledger now: their use is not foreign
    use.
    """
    open_now = UsageInterval.objects.filter(cluster=cluster, end=None, member="", unused=False)
    pods = uses.pods_of(cluster)
    slots = open_now.filter(slot__startswith=pods).values_list("slot", flat=True)
    claims = open_now.filter(source_start__kind="ResourceClaim").values_list("source_start__uid", flat=True)
    return {slot.removeprefix(pods).partition("/")[0] for slot in slots} | set(claims)


def _record_pod(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old else {}
    if old and was.get("job") and (new.gone or new.uid != old.uid or has_finished(facts)):
        with _locked(cluster, was["job"]):
            _end_of(cluster, new, was["job"], _of_pod(cluster, old.uid))
    if not new.gone and facts.get("job"):
        was_bound = old is not None and old.uid == new.uid and bool(was.get("node"))
        with _locked(cluster, facts["job"]):
            missing = _unmetered(cluster, new.ref.namespace, facts["job"], name=new.ref.name)
            _begin_of(cluster, new, facts["job"], missing, watched=() if was_bound else (new.uid,))


def _record_claim(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old else {}
    if not (facts.get("pod") or was.get("pod")):
        return
    now = set() if new.gone or old is None or old.uid != new.uid else _given(cluster, facts)
    ended = [slot for slot, at in _given(cluster, was) - now]
    if old and ended:
        rows = _of_claim(cluster, old.uid).filter(slot__in=ended)
        for job in set(rows.values_list("holder_id", flat=True)):
            with _locked(cluster, str(job)):
                _end_of(cluster, new, str(job), rows.filter(holder_id=job))
    if not new.gone and facts["devices"]:
        pods = MirrorObject.objects.filter(cluster=cluster, kind="Pod", namespace=new.ref.namespace)
        had = _given(cluster, was) & _given(cluster, facts)
        for name, job in pods.filter(uid=facts.get("pod", "")).values_list("name", "facts__job"):
            with _locked(cluster, job or ""):
                missing = _unmetered(cluster, new.ref.namespace, job, name=name) if job else []
                _begin_of(cluster, new, job, missing, watched=() if had else (new.uid,))


def _record_workload(cluster: str, new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old and old.uid == new.uid else {}
    before = reservations.reservation(was) if was else reservations.NONE
    now = reservations.NONE if new.gone else reservations.reservation(facts)
    job = (facts.get("job") or (old.facts.get("job") if old else None) or {}).get("uid")
    if not job or (was and not new.gone and before == now):
        return
    with _locked(cluster, job):
        account = reservations.account(cluster, new.ref.namespace, job)
        if account is None:
            return
        missing = [] if new.gone else _unmetered(cluster, new.ref.namespace, job)
        has_begun = now.since != before.since or not before.usage
        _charge(account, missing, new, has_begun=has_begun)


def _charge(account: Account, missing: Collection[UnresolvedUse], new: Observation, *, has_begun: bool) -> None:
    """Bring the account along with its workload. A reservation that began unseen is charged from when the cluster says;
    what was charged before it ends with the last sighting. Pods that were bound before are charged for themselves."""
    evidence, estimated = _evidence(new), not new.live
    start, early = new.at, list[UnresolvedUse]()
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


def _repair(cluster: str, namespace: str, job: str, *, at: datetime) -> int:
    account = reservations.account(cluster, namespace, job)
    if account is None:
        return 0
    evidence = {"kind": "none", "name": "", "uid": "", "resource_version": ""}
    new = account.reserved.keys() - account.known
    begun = reservations.charge(account, account.since or at, evidence, estimated=True, only=new)
    opened = _begin(account, _unmetered(cluster, namespace, job), at=at) if account.is_queued else 0
    return opened + begun + reservations.charge(account, at, evidence, estimated=True)


@contextmanager
def _locked(cluster: str, job: str) -> Iterator[None]:
    """The watcher and a repair never write of one Job at once; each then sees what the other wrote."""
    with advisory_lock("job-ledger", cluster, job):
        yield


def _evidence(new: Observation) -> dict[str, str]:
    revision = "gone" if new.gone else str(new.resource_version)
    return {"kind": new.ref.kind, "name": new.ref.name, "uid": new.uid, "resource_version": revision}


def _given(cluster: str, claim: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Slots of the devices that the claim was given, each with when."""
    return {(uses.slot_of(cluster, device), claim["allocated_at"]) for device in claim.get("devices", ())}


def _of_pod(cluster: str, uid: str) -> QuerySet[UsageInterval]:
    """What is open of a pod by device plugin."""
    return UsageInterval.objects.filter(end=None, slot__startswith=f"{uses.pods_of(cluster)}{uid}/")


def _of_claim(cluster: str, uid: str) -> QuerySet[UsageInterval]:
    """What is open of a claim that was made for a pod."""
    shown = {"source_start__kind": "ResourceClaim", "source_start__uid": uid}
    return UsageInterval.objects.filter(cluster=cluster, end=None, member="", unused=False, **shown)


def _end(rows: QuerySet[UsageInterval], at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> int:
    keys = list(rows.values_list("key", flat=True))
    return sum(metering.close_interval(key, at, evidence, estimated=estimated) is not None for key in keys)


def _end_of(cluster: str, new: Observation, job: str, rows: QuerySet[UsageInterval]) -> None:
    evidence, estimated = _evidence(new), not new.live
    ended = _end(rows, new.at, evidence, estimated=estimated)
    if ended and (account := reservations.account(cluster, new.ref.namespace, job)):
        reservations.charge(account, new.at, evidence, estimated=estimated)


def _unmetered(cluster: str, namespace: str, job: str, **only: str) -> list[UnresolvedUse]:
    """Return what the Job's pods use and the ledger lacks.

    What has ended there and is used again begins now, under its next key (etcd was restored from a backup).
    """
    there = MirrorObject.objects.filter(cluster=cluster, namespace=namespace)
    pods = list(there.filter(kind="Pod", allocation="", facts__job=job, **only))
    claims = _claims(there, [pod for pod in pods if not uses.is_bound(pod.facts)])
    found = [*uses.of_pods(job, pods), *uses.of_claims(job, claims)]
    missing: list[UnresolvedUse] = []
    while found:
        ends = dict(UsageInterval.objects.filter(key__in=[one.key for one in found]).values_list("key", "end"))
        missing += [one for one in found if one.key not in ends]
        ended = [(one, end) for one in found if (end := ends.get(one.key))]
        found = [replace(one, key=uuid5(one.key, f"{end:%FT%T.%f}"), since=clock.now()) for one, end in ended]
    return missing


def _claims(there: QuerySet[MirrorObject], pods: Collection[MirrorObject]) -> list[MirrorObject]:
    """Return the claims of a namespace that the scheduler made for these pods; a pod that names one has no other."""
    if not pods:
        return []
    named = {pod.uid: pod.facts.get("extended_claim", "") for pod in pods}
    rows = there.filter(kind="ResourceClaim", facts__pod__in=list(named))
    return [claim for claim in rows if named[claim.facts["pod"]] in ("", claim.name)]


def _begin_of(
    cluster: str, new: Observation, job: str, missing: Collection[UnresolvedUse], *, watched: Collection[str]
) -> None:
    account = reservations.account(cluster, new.ref.namespace, job) if missing else None
    if account is not None and account.is_queued:
        _begin(account, missing, at=new.at, watched=watched if new.live else ())


def _begin(
    account: Account,
    missing: Collection[UnresolvedUse],
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
    for one in uses.resolve(account.project.cluster_id, list(missing)):
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
