"""Proves the balance of hours: those that have ended, once every watched kind has passed them.

Each is compared with its roll-up, if there is one, and the newest hour also with the mirror, since that shows the
present alone.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import structlog

from allocations.cluster.kinds import KINDS
from allocations.models import WatchState
from allocations.reconcile.metering import open_intervals
from portal.clusters import registry
from portal.core import clock
from quotas.metering import inferred_capacity, ledger_starts, proofs, rollup_proof
from quotas.metering.balance import Failure
from quotas.metering.hours import HOUR, hour_of
from quotas.metering.models import BalanceProof

log = structlog.get_logger(__name__)
MAX_HOURS = 12
"""The most hours that a run checks of a cluster: far more than pass between runs, so that it catches up."""


def prove_due() -> int:
    """Check the hours of all clusters that are due, at most MAX_HOURS of each; return how many were checked.

    Due are hours that were not checked yet, the newest first, then those that were not balanced.
    """
    first_hours, checked = ledger_starts.first_hours(), 0
    for cluster in registry.slugs():
        end = complete_until(cluster)
        if end is None or cluster not in first_hours:
            continue
        proved = proofs.proved(cluster)
        hours = list(_newest_first(first_hours[cluster], end))
        due = [hour for hour in hours if hour not in proved] + [hour for hour in hours if not proved.get(hour, True)]
        if due:
            inferred_capacity.infer(cluster)
        for hour in due[:MAX_HOURS]:
            prove(cluster, hour, is_newest=hour == end - HOUR)
            checked += 1
    return checked


def prove_between(cluster: str, start: datetime | None, end: datetime | None) -> Iterator[BalanceProof]:
    """Check the hours of a cluster that begin in ``[start, end)``, oldest first, and yield each result.

    None is the beginning of the ledger, and the end of the newest hour that can be checked.
    """
    first, complete = ledger_starts.first_hours().get(cluster), complete_until(cluster)
    if first is None or complete is None:
        return
    inferred_capacity.infer(cluster)
    for hour in reversed(list(_newest_first(first, complete))):
        if (start is None or hour >= start) and (end is None or hour < end):
            yield prove(cluster, hour, is_newest=hour == complete - HOUR)


def prove(cluster: str, hour: datetime, *, is_newest: bool) -> BalanceProof:
    """Check one hour and store the result; the newest one is compared with the mirror too."""
    row = proofs.prove(cluster, hour, partial(_more, cluster, hour, is_newest=is_newest))
    if not row.balanced:
        first = row.failures[0]["message"]
        log.error("balance.failed", cluster=cluster, hour=f"{hour:%F %H:%M}", rows=row.failure_count, first=first)
    return row


def _more(cluster: str, hour: datetime, *, is_newest: bool) -> list[Failure]:
    """Return how the ledger differs from its roll-up, and of the newest hour from the mirror."""
    return [*rollup_proof.differences(cluster, hour), *(open_intervals.differences(cluster) if is_newest else ())]


def complete_until(cluster: str) -> datetime | None:
    """Return the end of the newest hour that has ended and that every watched kind has passed; None before the watcher
    has listed all kinds.
    """
    states = dict(WatchState.objects.filter(cluster=cluster, kind__in=KINDS).values_list("kind", "synced_at"))
    if KINDS.keys() - states.keys():
        return None
    passed = min(clock.now(), *states.values())
    return hour_of(passed)


def _newest_first(start: datetime, end: datetime) -> Iterator[datetime]:
    hour = end - HOUR
    while hour >= start:
        yield hour
        hour -= HOUR
