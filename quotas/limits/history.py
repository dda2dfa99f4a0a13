"""The history of quotas: records each change, and reads what applied in a window."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from portal.core import clock
from portal.tenants.models import HierarchyChange
from quotas.limits import names
from quotas.limits.models import Limit, QueuePolicy, QuotaChange, WeightChange
from quotas.limits.tree import Quota

Parents = dict[str, str | None]


@dataclass(frozen=True)
class QuotaPeriod:
    """What applied in ``[start, end)``: the parents of queues and cohorts, and the quotas of each pool by its key, all
    by name in Kueue.
    """

    start: datetime
    end: datetime
    parents: Mapping[str, str | None]
    quotas: Mapping[str, Mapping[str, Quota]]


def record_quota(limit: Limit, quota: Quota) -> None:
    """Record the quota of the limit's holder and pool from now on. Called in the transaction of the change."""
    assert limit.pool is not None
    QuotaChange.objects.create(
        at=clock.now(),
        department=limit.department,
        team=limit.team,
        pool=limit.pool,
        nominal=quota.nominal,
        borrowing=quota.borrowing,
        lending=quota.lending,
    )


def record_quotas(limits: Iterable[Limit], at: datetime) -> None:
    """Record that the holders of these quotas have them from ``at`` on, of which nothing was recorded until then."""
    QuotaChange.objects.bulk_create(
        QuotaChange(
            at=at,
            department=limit.department,
            team=limit.team,
            pool=limit.pool,
            nominal=limit.nominal,
            borrowing=limit.borrowing,
            lending=limit.lending,
        )
        for limit in limits
    )


def record_weight(policy: QueuePolicy) -> None:
    """Record the weight of the policy from now on. Called in the transaction of the change."""
    WeightChange.objects.create(at=clock.now(), department=policy.department, team=policy.team, weight=policy.weight)


def recorded_since() -> datetime | None:
    """Return when the first quota was recorded; None if none is."""
    return QuotaChange.objects.order_by("at").values_list("at", flat=True).first()


def periods(cluster: str, start: datetime, end: datetime) -> list[QuotaPeriod]:
    """Return what applied to the pools of a cluster in ``[start, end)``, by time; three queries.

    The time before the first recorded parent of a team or department has that one; before its first quota of a pool
    it had none.
    """
    parents, moves = _parents(start, end)
    quotas: dict[str, dict[str, Quota]] = defaultdict(dict)
    by_time: dict[datetime, list[Change]] = defaultdict(list)
    for change in changes(start, end, pool__flavor__cluster=cluster):
        by_time[max(change.at, start)].append(change)
    found = []
    for begin, until in pairwise(sorted({start, *moves, *by_time, end})):
        parents = parents | moves.get(begin, {})
        for change in by_time[begin]:
            quotas[change.pool] = quotas[change.pool] | {change.name: change.quota}
        found.append(QuotaPeriod(begin, until, parents, dict(quotas)))
    return found


class Change(NamedTuple):
    """The quota of a pool that a queue or cohort, by its name in Kueue, has from a moment on."""

    at: datetime
    pool: str
    name: str
    quota: Quota


def changes(start: datetime, end: datetime, **pools: str) -> Iterator[Change]:
    """Yield the newest quota of each holder and pool at the start, and then each change until the end; two queries.
    ``pools`` are conditions of QuotaChange.
    """
    rows = QuotaChange.objects.filter(**pools)
    holder = ("department_id", "team_id", "pool_id")
    before = rows.filter(at__lte=start).order_by(*holder, "-at", "-id").distinct(*holder)
    after = rows.filter(at__gt=start, at__lt=end).order_by("at", "id")
    columns = ("at", "pool__key", "team__slug", "department__slug", "nominal", "borrowing", "lending")
    for found in (before, after):
        for at, pool, team, department, *amounts in found.values_list(*columns):
            yield Change(at, pool, _name(team, department), Quota(*amounts))


def _parents(start: datetime, end: datetime) -> tuple[Parents, dict[datetime, Parents]]:
    """Return the parents at the start, and those that changed at each moment after it."""
    at_start: Parents = {}
    later: dict[datetime, Parents] = defaultdict(dict)
    rows = HierarchyChange.objects.order_by("at", "id")
    for at, team, department, parent in rows.values_list("at", "team__slug", "department__slug", "parent__slug"):
        name, above = _name(team, department), names.cohort(parent) if parent else None
        if at <= start or name not in at_start:
            at_start[name] = above
        elif at < end:
            later[at][name] = above
    return at_start, later


def _name(team: str | None, department: str | None) -> str:
    return names.cluster_queue(team) if team else names.cohort(department or "")
