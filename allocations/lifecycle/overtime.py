"""Flags in the ledger what an allocation has held past its end, if the portal was down then and ends it late."""

from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings

from allocations.lifecycle import held_intervals, spec_of_row
from allocations.models import Allocation
from quotas.metering import overtime

LATE = timedelta(minutes=1)
"""By how much later than its end an allocation is ended if the portal was down; else it takes seconds."""


def since(row: Allocation, now: datetime) -> datetime | None:
    """Return the end of the allocation's time if to end it now is late, else None; one query if it may be."""
    time = spec_of_row.time(row)
    if not _is_late(time.begins_at + time.span, now):
        return None
    # The row may not have the newest holds yet.
    held = [(one.start, one.end) for one in held_intervals.read(row.pk).latest]
    over = replace(time, held=time.held.with_intervals(held)).over_since
    return over if over is not None and _is_late(over, now) else None


def record(row: Allocation, since: datetime, now: datetime) -> str:
    """Record what the allocation has held since then as overtime; return a sentence for its timeline, empty if it has
    held nothing.
    """
    charged = settings.CHARGE_OVERTIME
    if not overtime.record(row.pk, since, {"kind": "overtime", "ended_at": now.isoformat()}, charged=charged):
        return ""
    is_charged = "charged" if charged else "not charged"
    return f"The portal did not end it in time, at {since:%F %T} UTC. What was held since is {is_charged}."


def _is_late(over: datetime, now: datetime) -> bool:
    return now - over >= LATE
