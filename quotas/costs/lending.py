"""What teams borrowed and lent in a window, from the ledger and the history of limits."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from django.db.models import Q

from quotas.catalog.models import Offering, Pool
from quotas.costs.rating import Window
from quotas.limits import counting, history, lending, names
from quotas.limits.lending import Debt, UsageChange
from quotas.limits.selectors import quota_snapshot
from quotas.metering.models import UsageInterval


def borrowed(window: Window, now: datetime) -> dict[str, list[Debt]]:
    """Return unit-hours by pool, between names in Kueue, with departments as they are today. A fixed number of queries.

    Pools that nobody borrowed from are absent.
    """
    agreed, until = quota_snapshot(), min(window.end, now)
    changes = _of_quotas(window)
    for pool, found in _of_usage(window, until).items():
        changes[pool] += found
    owed = {pool: lending.over_time(agreed.parents, found, until) for pool, found in changes.items()}
    return {pool: found for pool, found in sorted(owed.items()) if found}


def _of_quotas(window: Window) -> dict[str, list[UsageChange]]:
    """Return what each quota was at the window's start, and how it changed in it."""
    changes: dict[str, list[UsageChange]] = defaultdict(list)
    for at, pool, name, quota in history.changes(window.start, window.end):
        changes[pool].append(UsageChange(max(at, window.start), name, quota=quota))
    return changes


def _of_usage(window: Window, until: datetime) -> dict[str, list[UsageChange]]:
    pool_and_share = _pool_and_share()
    rows = UsageInterval.objects.filter(Q(end=None) | Q(end__gt=window.start), start__lt=until)
    changes: dict[str, list[UsageChange]] = defaultdict(list)
    for row in rows.order_by():
        pool, per_slice = pool_and_share.get(row.offering, ("", None))
        if not pool:
            continue
        amount = row.gpus if per_slice is None else per_slice * row.count
        name = names.cluster_queue(row.team)
        changes[pool].append(UsageChange(max(row.start, window.start), name, used=amount))
        if row.end is not None and row.end < until:
            changes[pool].append(UsageChange(row.end, name, used=-amount))
    return changes


def _pool_and_share() -> Mapping[str, tuple[str, Fraction | None]]:
    """Return for each offering its pool and the units that a slice takes of it; None for a claim, whose share the
    ledger has.
    """
    rows = Offering.objects.select_related("pool")
    keys = dict(Pool.objects.values_list("pk", "key"))
    return {
        row.key: (keys[row.pool_id], None if row.kind == "claim" else counting.demand(row, 1).pools[row.pool_id])
        for row in rows
    }
