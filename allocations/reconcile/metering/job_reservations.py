"""Charges queued Jobs for reserved quota that no pod of them uses.

At any time a Job is charged for the larger of its reservation and its pods' use.

For each flavor and resource one interval is open while part of the reservation is unused. When that part changes, the
interval is closed and the next one opens at the same moment. Pods have intervals of their own, so no GPU is charged
twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from django.db.models import Max, Sum

from allocations.domain.observed_facts import WorkloadFacts
from allocations.models import MirrorObject
from allocations.reconcile.metering.attribution import attribution
from portal.core.reading import Columns, read_tables
from portal.tenants.models import Project
from quotas.catalog.models import Kind, Offering
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval

log = structlog.get_logger(__name__)


class Reservation(NamedTuple):
    """Quota that Kueue has reserved for a Workload.

    ``since`` is ISO 8601, "" if unknown; ``usage`` is {flavor: {resource: amount}}.
    """

    since: str
    usage: Mapping[str, Mapping[str, int]]


NO_RESERVATION = Reservation("", {})


@dataclass
class Account:
    """What the ledger has of one Job, updated as its intervals open and close.

    Mappings are by offering, except ``offerings``.

    ``changed``: when the unused part last changed. ``charged``: offerings that the ledger has any interval of.
    ``ended``: when the last interval of the Job was closed. ``is_queued``: whether it has a Workload, or had one that
    was charged, since pods of a deleted Job may be observed after it. ``labels`` are those of its Workload, or of its
    open intervals.
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
    charged: set[str] = field(default_factory=set)
    ended: datetime | None = None
    is_queued: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)


def reservation(workload: WorkloadFacts) -> Reservation:
    """Return the reservation of a Workload, given its facts."""
    if not workload.get("cluster_queue") or not workload["usage"]:
        return NO_RESERVATION
    return Reservation(workload["conditions"].get("QuotaReserved", {}).get("at", ""), workload["usage"])


def read_account(cluster: str, namespace: str, job: str) -> Account | None:
    """Return the account of a Job of a cluster, or None if its namespace belongs to no project."""
    where = {"cluster": cluster, "namespace": namespace}
    workloads = MirrorObject.objects.filter(kind="Workload", allocation="", facts__job__uid=job, **where)
    facts = cast(list[WorkloadFacts], list(workloads.values_list("facts", flat=True)))
    project = Project.objects.filter(**where).select_related("team__department").first()
    if project is None:
        return None
    reservations = [reservation(each) for each in facts]
    offerings = offerings_of(cluster, {flavor for each in reservations for flavor in each.usage})
    since = min((each.since for each in reservations if each.since), default="")
    account = Account(
        job=UUID(job),
        name=next((each["job"]["name"] for each in facts), ""),
        project=project,
        since=datetime.fromisoformat(since) if since else None,
        reserved=_by_offering(reservations, offerings, namespace, job),
        offerings=offerings,
        labels=next((each["labels"] for each in facts if "labels" in each), {}),
    )
    _add_intervals(account)
    account.is_queued = bool(facts or account.charged)
    return account


def charge(
    account: Account, at: datetime, evidence: Mapping[str, Any], *, estimated: bool, only: Iterable[str] | None = None
) -> bool:
    """Open and close intervals so that the unused part of the reservation is charged from ``at`` on; return whether any
    changed.

    ``only`` restricts this to some offerings.
    """
    changed = False
    for key in sorted({*account.reserved, *account.unused} if only is None else only):
        unused = max(0, account.reserved.get(key, 0) - account.used[key])
        interval, charged = account.unused.get(key, (None, 0))
        if unused == charged:
            continue
        changed = True
        account.changed[key] = max(at, account.changed.get(key, at))
        if interval is not None:
            metering.close_interval(interval, at, evidence, estimated=estimated)
            del account.unused[key]
        if unused:
            account.unused[key] = (_open(account, key, unused, at, evidence, estimated=estimated), unused)
    return changed


def close_all(account: Account, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> None:
    """Close the intervals of the unused part, since the reservation is over."""
    charge(replace(account, reserved={}), at, evidence, estimated=estimated)


def differing_jobs(cluster: str) -> set[tuple[str, str]]:
    """Return namespace and uid of the Jobs of a cluster whose unused part differs between mirror and ledger; two
    queries.
    """
    queued = MirrorObject.objects.filter(cluster=cluster, kind="Workload", allocation="", facts__has_key="job")
    queued = queued.exclude(facts__cluster_queue="")
    rows = UsageInterval.objects.filter(end=None, member="", cluster=cluster).order_by()
    columns = ("namespace", "holder_id", "offering", "unused")
    found, metered = read_tables(
        Columns(queued, ("namespace", "facts")),
        Columns(rows.values(*columns).annotate(n=Sum("count")), (*columns, "n")),
    )
    reservations: dict[tuple[str, str], list[Reservation]] = {}
    for namespace, facts in cast(Iterable[tuple[str, WorkloadFacts]], found):
        reservations.setdefault((namespace, facts["job"]["uid"]), []).append(reservation(facts))
    offerings = offerings_of(
        cluster, {flavor for each in reservations.values() for one in each for flavor in one.usage}
    )
    reserved = {key: _by_offering(each, offerings) for key, each in reservations.items()}
    used, unused = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for namespace, job, offering, is_unused, count in metered:
        (unused if is_unused else used)[namespace, job, offering] += count
    expected = Counter(
        {(*job, offering): amount for job, each in reserved.items() for offering, amount in each.items()}
    )
    return {key[:2] for key in expected.keys() | unused.keys() if max(0, expected[key] - used[key]) != unused[key]}


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
    reservations: Iterable[Reservation], offerings: Mapping[tuple[str, str], Offering], *job: str
) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in reservations:
        for flavor, amounts in each.usage.items():
            for resource, amount in amounts.items():
                if offering := offerings.get((flavor, resource)):
                    found[offering.key] += amount
                elif job:
                    log.warning("job.unknown_offering", job=job, flavor=flavor, resource=resource)
    return dict(found)


def _add_intervals(account: Account) -> None:
    intervals = UsageInterval.objects.filter(cluster=account.project.cluster_id, holder_id=account.job)
    for row in intervals.filter(end=None):
        account.labels = account.labels or row.labels
        if row.unused:
            account.unused[row.offering] = (row.key, row.count)
        else:
            account.used[row.offering] += row.count
    groups = intervals.order_by().values_list("offering", "unused")
    for offering, is_unused, start, end in groups.annotate(last_start=Max("start"), last_end=Max("end")):
        account.charged.add(offering)
        account.ended = max(filter(None, (account.ended, end)), default=None)
        if is_unused:
            account.changed[offering] = max(start, end or start)


def _open(
    account: Account, key: str, count: int, at: datetime, evidence: Mapping[str, Any], *, estimated: bool
) -> UUID:
    (flavor, resource), offering = next(item for item in account.offerings.items() if item[1].key == key)
    # A slot of the ledger: it begins like the Job's target, but may not follow a change of that.
    slot = f"{account.project.cluster_id}/job:{account.job}/{flavor}/{resource}"
    source = f"{evidence['kind']}/{evidence['name']}/{evidence['uid']}/{evidence['resource_version']}"
    row = metering.open_interval(
        _next_key(f"{slot}/{source}/{count}"),
        account.job,
        slot,
        at,
        attribution(account.project, offering, offering.gpu_share, member="", unused=True, labels=account.labels),
        count,
        {**evidence, "job": account.name},
        estimated=estimated,
    )
    return row.key


def _next_key(fact: str) -> UUID:
    """Return the key of the fact's next interval. If earlier ones have ended, it is computed from their ends."""
    key = uuid5(NAMESPACE_URL, f"gpu-portal/unused/{fact}")
    while ended := UsageInterval.objects.filter(key=key, end__isnull=False).first():
        fact = f"{fact}/{ended.end:%FT%T.%f}"
        key = uuid5(NAMESPACE_URL, f"gpu-portal/unused/{fact}")
    return key
