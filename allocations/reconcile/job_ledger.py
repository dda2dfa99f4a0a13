"""From tenants' own queued Jobs to the ledger: what each pod uses, and what is reserved beside it.

A Job is charged from its admission until Kueue gave its quota back, as a hold is. A pod that is bound takes GPUs of its
node until the cluster shows it finished or gone, also while it ends after the quota went back: that is its interval,
the ``allocation`` of it the Job's uid, its offering that of the node's flavor for the resource. What is reserved and
used by no pod is charged by ``job_reservations``. Kubernetes names no device, and no object says who made the Job: both
stay empty.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from django.conf import settings
from django.db import transaction

from allocations.cluster.kinds import Observation
from allocations.models import MirrorObject
from allocations.reconcile import job_reservations as reservations
from allocations.reconcile.job_reservations import Account
from allocations.reconcile.wants import FINISHED
from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.catalog.models import Node, Offering
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval

log = structlog.get_logger(__name__)
PODS = f"{settings.CLUSTER_NAME}/pod:"


def record(new: Observation, old: MirrorObject | None) -> None:
    """Bring the ledger along with one change, already in the mirror: of a pod, or of the workload that makes its Job
    known as queued (whichever of the two is seen last)."""
    if new.ref.kind == "Pod":
        _record_pod(new, old)
    elif new.ref.kind == "Workload":
        _record_workload(new, old)


def repair(metered: Collection[str]) -> bool:
    """Bring the ledger to what the mirror shows of all Jobs; whether anything differed.

    That is what could not be charged yet, since the flavor of a pod's node was not known when it was bound, and what
    nobody recorded. ``metered``: uids of the pods that the ledger has.
    """
    rows = MirrorObject.objects.filter(kind="Pod", allocation="", facts__has_key="job").exclude(facts__node="")
    pods = {pod.uid: pod for pod in rows if not _is_done(pod.facts)}
    missing = {(pod.namespace, pod.facts["job"]) for uid, pod in pods.items() if uid not in metered}
    queued = MirrorObject.objects.filter(kind="Workload", facts__job__uid__in=[job for _, job in missing])
    jobs = set(queued.values_list("namespace", "facts__job__uid")) | reservations.differing()
    repaired = _end_lost(metered - pods.keys())
    for namespace, job in sorted(jobs):
        with transaction.atomic(), _locked(job):
            repaired += _repair(namespace, job, at=clock.now())
    return repaired > 0


def metered_pods() -> set[str]:
    """Uids of the pods whose GPUs are in the ledger now: what they use is held, and no foreign use."""
    slots = UsageInterval.objects.filter(end=None, slot__startswith=PODS).values_list("slot", flat=True)
    return {slot.removeprefix(PODS).partition("/")[0] for slot in slots}


def _record_pod(new: Observation, old: MirrorObject | None) -> None:
    facts, was = new.facts or {}, old.facts if old else {}
    if old and was.get("job") and (new.gone or new.uid != old.uid or _is_done(facts)):
        with _locked(was["job"]):
            ended = _end(old.uid, new.at, _evidence(new), estimated=not new.live)
            if ended and (account := reservations.account(new.ref.namespace, was["job"])):
                reservations.charge(account, new.at, _evidence(new), estimated=not new.live)
    if not new.gone and facts.get("job"):
        was_bound = old is not None and old.uid == new.uid and bool(was.get("node"))
        with _locked(facts["job"]):
            pods = _unmetered(new.ref.namespace, facts["job"], name=new.ref.name)
            if pods and (account := reservations.account(new.ref.namespace, facts["job"], queued=True)):
                _begin(account, pods, at=new.at, watched=new.live and not was_bound)


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
        pods = [] if new.gone else _unmetered(new.ref.namespace, job)
        has_begun = now.since != before.since or not before.usage
        _charge(account, pods, new, has_begun=has_begun)


def _charge(account: Account, pods: Collection[MirrorObject], new: Observation, *, has_begun: bool) -> None:
    """Bring the account along with its workload. A reservation that began unseen is charged from when the cluster says;
    what was charged before it ends with the last sighting. Pods that were bound before are charged for themselves."""
    evidence, estimated = _evidence(new), not new.live
    start, early = new.at, []
    if has_begun:
        reservations.end_all(account, new.at, evidence, estimated=estimated)
        start = account.since or new.at if estimated else new.at
        early = [pod for pod in pods if _bound_at(pod, start) <= start]
        _begin(account, early, at=new.at, beside=False)
    reservations.charge(account, start, evidence, estimated=estimated)
    _begin(account, [pod for pod in pods if pod not in early], at=new.at)


def _repair(namespace: str, job: str, *, at: datetime) -> int:
    account = reservations.account(namespace, job)
    if account is None:
        return 0
    evidence = {"kind": "none", "name": "", "uid": "", "resource_version": ""}
    new = account.reserved.keys() - account.known
    begun = reservations.charge(account, account.since or at, evidence, estimated=True, only=new)
    opened = _begin(account, _unmetered(namespace, job), at=at) if account.name else 0
    return opened + begun + reservations.charge(account, at, evidence, estimated=True)


@contextmanager
def _locked(job: str) -> Iterator[None]:
    """The watcher and a repair never write of one Job at once; each then sees what the other wrote."""
    with advisory_lock("job", job):
        yield


def _is_done(pod: Mapping[str, Any]) -> bool:
    return pod.get("phase") in FINISHED


def _evidence(new: Observation) -> dict[str, str]:
    revision = "gone" if new.gone else str(new.resource_version)
    return {"kind": new.ref.kind, "name": new.ref.name, "uid": new.uid, "resource_version": revision}


def _end(pod: str, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> int:
    keys = UsageInterval.objects.filter(end=None, slot__startswith=f"{PODS}{pod}/").values_list("key", flat=True)
    return sum(metering.close_interval(key, at, evidence, estimated=estimated) is not None for key in keys)


def _end_lost(pods: Iterable[str]) -> int:
    """End what is open of pods that the mirror has no more: nobody recorded their end."""
    evidence = {"kind": "none"}
    return sum(_end(pod, clock.now(), evidence, estimated=True) for pod in pods)


def _unmetered(namespace: str, job: str, **only: str) -> list[MirrorObject]:
    """The Job's pods that have GPUs of which the ledger lacks some."""
    rows = MirrorObject.objects.filter(kind="Pod", namespace=namespace, allocation="", facts__job=job, **only)
    there = [pod for pod in rows if pod.facts["node"] and pod.facts["gpus"] and not _is_done(pod.facts)]
    keys = {_key(job, pod, resource) for pod in there for resource in pod.facts["gpus"]}
    known = set(UsageInterval.objects.filter(key__in=keys).values_list("key", flat=True)) if keys else set()
    return [pod for pod in there if not known.issuperset(_key(job, pod, each) for each in pod.facts["gpus"])]


def _begin(
    account: Account, pods: Collection[MirrorObject], *, at: datetime, watched: bool = False, beside: bool = True
) -> int:
    """Open what these pods use: from ``at`` where their binding was ``watched``, else from when the cluster says, and
    no earlier than the Job's unused part last changed; with ``beside`` that part changes as they begin. Returns how
    many were opened."""
    opened = 0
    offerings = _offerings({pod.facts["node"] for pod in pods})
    begins: dict[datetime, list[tuple[MirrorObject, str, Offering]]] = defaultdict(list)
    for pod in pods:
        since = at if watched else _bound_at(pod, at)
        for resource in sorted(pod.facts["gpus"]):
            if offering := offerings.get((pod.facts["node"], resource)):
                begins[max(since, account.changed.get(offering.key, since))].append((pod, resource, offering))
            else:
                log.warning("job.unknown_offering", namespace=pod.namespace, pod=pod.name, resource=resource)
    for start, together in sorted(begins.items()):
        for pod, resource, offering in together:
            amount = pod.facts["gpus"][resource]
            evidence = _evidence_of(pod, account)
            metering.open_interval(
                _key(str(account.job), pod, resource),
                account.job,
                f"{PODS}{pod.uid}/{resource}",
                start,
                reservations.attribution(account.project, offering, node=pod.facts["node"]),
                amount,
                evidence,
                estimated=not watched,
            )
            opened += 1
            account.used[offering.key] += amount
        if beside:
            touched = {offering.key for _, _, offering in together}
            reservations.charge(account, start, evidence, estimated=not watched, only=touched)
    return opened


def _evidence_of(pod: MirrorObject, account: Account) -> dict[str, str]:
    revision = str(pod.resource_version)
    return {"kind": "Pod", "name": pod.name, "uid": pod.uid, "resource_version": revision, "job": account.name}


def _key(job: str, pod: MirrorObject, resource: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"gpu-portal/usage/{job}/{pod.uid}/{resource}")


def _bound_at(pod: MirrorObject, otherwise: datetime) -> datetime:
    said = pod.facts.get("scheduled_at")
    return datetime.fromisoformat(said) if said else otherwise


def _offerings(nodes: Iterable[str]) -> dict[tuple[str, str], Offering]:
    """The offering of a device plugin's resource on each node."""
    found = Node.objects.filter(name__in=nodes, flavor__path="device-plugin").values_list("name", "flavor__name")
    offerings = reservations.offerings_of({flavor for _, flavor in found})
    return {
        (node, resource): row for node, of in found for (flavor, resource), row in offerings.items() if flavor == of
    }
