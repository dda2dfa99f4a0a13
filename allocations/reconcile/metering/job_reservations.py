"""What a queued Job has reserved and no pod of it uses, in the ledger.

At every moment the Job is charged for the larger of what is reserved for it and what its pods use.

For each flavor and resource one interval is open while something is left over; when that changes, it ends and another
begins at the same moment. Together with the intervals of the Job's pods no GPU is charged twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from django.db.models import Max, Sum

from allocations.models import MirrorObject
from allocations.reconcile.metering.attribution import attribution
from portal.tenants.models import Project
from quotas.catalog.models import Kind, Offering
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval

log = structlog.get_logger(__name__)


class Reservation(NamedTuple):
    """Quota that Kueue keeps for a workload: since when (ISO 8601, "" where the cluster does not say), and what, as
    {flavor: {resource: amount}}."""

    since: str
    usage: Mapping[str, Mapping[str, int]]


NONE = Reservation("", {})


@dataclass
class Account:
    """One Job's side of the ledger, kept up while intervals of it open and end. All but ``offerings`` is by offering.

    ``changed``: when the unused part last changed. ``known``: offerings of which the ledger has any interval.
    ``ended``: when any interval of the Job last ended. ``is_queued``: whether it has a workload, or had one that was
    charged: pods of a deleted Job may be seen after it.
    """

    job: UUID
    name: str
    project: Project
    since: datetime | None
    reserved: Mapping[str, int]
    offerings: Mapping[tuple[str, str], Offering]
    used: Counter[str] = field(default_factory=Counter)
    unused: dict[str, tuple[UUID, int]] = field(default_factory=dict)
    changed: dict[str, datetime] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    ended: datetime | None = None
    is_queued: bool = True


def reservation(workload: Mapping[str, Any]) -> Reservation:
    """What the workload's facts say is reserved now."""
    if not workload.get("cluster_queue") or not workload["usage"]:
        return NONE
    return Reservation(workload["conditions"].get("QuotaReserved", {}).get("at", ""), workload["usage"])


def account(cluster: str, namespace: str, job: str) -> Account | None:
    """Return the account of a Job of a cluster, or None if its namespace belongs to no project."""
    where = {"cluster": cluster, "namespace": namespace}
    workloads = MirrorObject.objects.filter(kind="Workload", allocation="", facts__job__uid=job, **where)
    facts = list(workloads.values_list("facts", flat=True))
    project = Project.objects.filter(**where).select_related("team__department").first()
    if project is None:
        return None
    kept = [reservation(each) for each in facts]
    offerings = offerings_of(cluster, {flavor for each in kept for flavor in each.usage})
    since = min((each.since for each in kept if each.since), default="")
    found = Account(
        job=UUID(job),
        name=next((each["job"]["name"] for each in facts), ""),
        project=project,
        since=datetime.fromisoformat(since) if since else None,
        reserved=_by_offering(kept, offerings, namespace, job),
        offerings=offerings,
    )
    _read(found)
    found.is_queued = bool(facts or found.known)
    return found


def charge(
    of: Account, at: datetime, evidence: Mapping[str, Any], *, estimated: bool, only: Iterable[str] | None = None
) -> bool:
    """End and open intervals so that what is reserved and not used is charged from ``at`` on; whether any was.

    ``only``: offerings to look at, all unless given.
    """
    changed = False
    for key in sorted({*of.reserved, *of.unused} if only is None else only):
        left = max(0, of.reserved.get(key, 0) - of.used[key])
        interval, charged = of.unused.get(key, (None, 0))
        if left == charged:
            continue
        changed = True
        of.changed[key] = max(at, of.changed.get(key, at))
        if interval is not None:
            metering.close_interval(interval, at, evidence, estimated=estimated)
            del of.unused[key]
        if left:
            of.unused[key] = (_open(of, key, left, at, evidence, estimated=estimated), left)
    return changed


def end_all(of: Account, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> None:
    """End what is charged as unused: the reservation that it was for is over."""
    ended = replace(of, reserved={})
    charge(ended, at, evidence, estimated=estimated)


def differing(cluster: str) -> set[tuple[str, str]]:
    """Return (namespace, Job) for the Jobs of a cluster whose unused part is not charged as the mirror shows it; three
    queries.
    """
    queued = MirrorObject.objects.filter(cluster=cluster, kind="Workload", allocation="", facts__has_key="job")
    queued = queued.exclude(facts__cluster_queue="")
    kept: dict[tuple[str, str], list[Reservation]] = {}
    for namespace, facts in queued.values_list("namespace", "facts"):
        kept.setdefault((namespace, facts["job"]["uid"]), []).append(reservation(facts))
    offerings = offerings_of(cluster, {flavor for each in kept.values() for one in each for flavor in one.usage})
    reserved = {key: _by_offering(each, offerings) for key, each in kept.items()}
    used, unused = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    rows = UsageInterval.objects.filter(end=None, member="", cluster=cluster).order_by()
    for namespace, job, offering, is_unused, count in rows.values_list(
        "namespace", "holder_id", "offering", "unused"
    ).annotate(n=Sum("count")):
        (unused if is_unused else used)[namespace, str(job), offering] += count
    due = Counter({(*job, offering): amount for job, each in reserved.items() for offering, amount in each.items()})
    return {key[:2] for key in due.keys() | unused.keys() if max(0, due[key] - used[key]) != unused[key]}


def offerings_of(cluster: str, flavors: Iterable[str]) -> dict[tuple[str, str], Offering]:
    """Return the offerings of a cluster that are counted in one Kubernetes resource, by flavor name and resource."""
    found = Offering.objects.filter(flavor__cluster=cluster, flavor__name__in=list(flavors))
    rows = found.exclude(kind=Kind.CLAIM).select_related("flavor")
    return {
        (row.flavor.name, resource): row
        for row in rows
        if len(row.requests) == 1
        for resource, amount in row.requests.items()
        if amount == 1
    }


def _by_offering(
    kept: Iterable[Reservation], offerings: Mapping[tuple[str, str], Offering], *where: str
) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in kept:
        for flavor, amounts in each.usage.items():
            for resource, amount in amounts.items():
                if offering := offerings.get((flavor, resource)):
                    found[offering.key] += amount
                elif where:
                    log.warning("job.unknown_offering", job=where, flavor=flavor, resource=resource)
    return dict(found)


def _read(of: Account) -> None:
    intervals = UsageInterval.objects.filter(cluster=of.project.cluster_id, holder_id=of.job)
    for row in intervals.filter(end=None):
        if row.unused:
            of.unused[row.offering] = (row.key, row.count)
        else:
            of.used[row.offering] += row.count
    groups = intervals.order_by().values_list("offering", "unused")
    for offering, is_unused, start, end in groups.annotate(last_start=Max("start"), last_end=Max("end")):
        of.known.add(offering)
        of.ended = max(filter(None, (of.ended, end)), default=None)
        if is_unused:
            of.changed[offering] = max(start, end or start)


def _open(of: Account, key: str, count: int, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> UUID:
    (flavor, resource), offering = next(item for item in of.offerings.items() if item[1].key == key)
    slot = f"{of.project.cluster_id}/job:{of.job}/{flavor}/{resource}"
    said = f"{evidence['kind']}/{evidence['name']}/{evidence['uid']}/{evidence['resource_version']}"
    row = metering.open_interval(
        _next_key(f"{slot}/{said}/{count}"),
        of.job,
        slot,
        at,
        attribution(of.project, offering, offering.gpu_share, member="", unused=True),
        count,
        {**evidence, "job": of.name},
        estimated=estimated,
    )
    return row.key


def _next_key(fact: str) -> UUID:
    """The key of the fact, or that of its next interval where those of it have ended."""
    key = uuid5(NAMESPACE_URL, f"gpu-portal/unused/{fact}")
    while ended := UsageInterval.objects.filter(key=key, end__isnull=False).first():
        fact = f"{fact}/{ended.end:%FT%T.%f}"
        key = uuid5(NAMESPACE_URL, f"gpu-portal/unused/{fact}")
    return key
