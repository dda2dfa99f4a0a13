"""Flags what is held past its end because the portal was down."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import Q

from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import dirty_hours, services
from quotas.metering.models import Correction, UsageInterval


def record(holder_id: UUID, since: datetime, evidence: Mapping[str, Any], *, charged: bool) -> int:
    """Record that what the holder has held since ``since`` is overtime, charged or not; return how many intervals are.
    May be repeated.

    Each interval that is open, or ended later, ends then, and goes on as another one in its slot, which is flagged. The
    earlier end of one that had ended is a correction.
    """
    late = Q(end=None) | Q(end__gt=since)
    rows = UsageInterval.objects.filter(late, holder_id=holder_id, overtime=False)
    return sum(_split(row, since, evidence, charged=charged) for row in rows)


def _split(row: UsageInterval, since: datetime, evidence: Mapping[str, Any], *, charged: bool) -> bool:
    at = max(row.start, since)
    with transaction.atomic(), advisory_lock("slot", row.slot):
        ended = services.close_interval(row.key, at, evidence)
        if ended is None:
            return False
        rest: dict[str, Any] = {"end": None, "source_end": None, "estimated_end": False}
        if row.end is not None or ended.source_end != dict(evidence):
            if ended.end is None or ended.end <= at:
                return False
            rest = {name: getattr(ended, name) for name in rest}
            _bring_end_forward(ended, at, evidence)
        names = {field.attname for field in UsageInterval._meta.concrete_fields}
        values = {name: getattr(row, name) for name in names - {"key", *rest}} | rest
        values |= {"start": at, "estimated_start": False, "source_start": dict(evidence)}
        values |= {"overtime": True, "uncharged": not charged, "recorded_at": clock.now()}
        UsageInterval.objects.create(key=uuid5(row.key, "overtime"), **values)
    return True


def _bring_end_forward(row: UsageInterval, at: datetime, evidence: Mapping[str, Any]) -> None:
    """End an interval at ``at`` that has ended later, with a correction."""
    assert row.end is not None
    corrected: dict[str, Any] = {"end": at, "evidence": dict(evidence)}
    cause, former = Correction.Cause.OVERTIME, row.end
    Correction.objects.create(usage=row, former_end=former, cause=cause, recorded_at=clock.now(), **corrected)
    UsageInterval.objects.filter(pk=row.pk).update(end=at, source_end=dict(evidence), estimated_end=False)
    dirty_hours.mark(row.cluster_id, at, former)
