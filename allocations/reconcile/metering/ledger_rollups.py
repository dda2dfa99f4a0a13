"""Rolls up the hours that have ended, once every watched kind has passed them, and again those that change later."""

from datetime import datetime

from allocations.reconcile.metering import balance_proof
from portal.clusters import registry
from portal.core import clock
from quotas.costs import rollups
from quotas.metering import ledger_starts, proofs
from quotas.metering.dirty_hours import settled_until
from quotas.metering.hours import DAY, HOUR, day_of, hours_between

MAX_HOURS = 48
"""The most hours that a run rolls up of a cluster."""


def roll_up_due() -> int:
    """Roll up the hours of all clusters that are due, at most MAX_HOURS of each; return how many.

    Due are hours that have changed since they were rolled up, whose balance is proved again if it was before, then
    those that never were, the newest first.
    """
    first_hours, count = ledger_starts.first_hours(), 0
    for cluster in registry.slugs():
        end = complete_until(cluster)
        if end is None or cluster not in first_hours:
            continue
        changed, known, proved = rollups.dirty_hours(cluster, end), rollups.rolled_up_hours(cluster), None
        missing = [hour for hour in hours_between(first_hours[cluster], end) if hour not in known]
        due = dict.fromkeys([*changed, *reversed(missing)])
        for hour in list(due)[:MAX_HOURS]:
            rollups.roll_up(cluster, hour, hour + HOUR)
            count += 1
            if hour in known:
                proved = proofs.proved(cluster) if proved is None else proved
                if hour in proved:
                    balance_proof.prove(cluster, hour, is_newest=False)
    return count


def rebuild(cluster: str, start: datetime | None, end: datetime | None) -> int:
    """Roll up the hours of a cluster that begin in ``[start, end)``, a day at a time; return how many.

    None is the beginning of the ledger, and the end of the newest hour that can be rolled up.
    """
    first, complete = ledger_starts.first_hours().get(cluster), complete_until(cluster)
    if first is None or complete is None:
        return 0
    hours = [
        hour
        for hour in hours_between(first, complete)
        if (start is None or hour >= start) and (end is None or hour < end)
    ]
    for day in sorted({day_of(hour) for hour in hours}):
        of_day = [hour for hour in hours if day <= hour < day + DAY]
        rollups.roll_up(cluster, of_day[0], of_day[-1] + HOUR)
    return len(hours)


def complete_until(cluster: str) -> datetime | None:
    """Return the end of the newest hour that may be rolled up; None before the watcher has listed all kinds."""
    passed = balance_proof.complete_until(cluster)
    return None if passed is None else min(passed, settled_until(clock.now()))
