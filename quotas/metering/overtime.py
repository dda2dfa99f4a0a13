"""Flags what is held past its end because the portal was down."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.db import transaction

from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import services
from quotas.metering.models import UsageInterval


def record(holder_id: UUID, since: datetime, evidence: Mapping[str, Any], *, charged: bool) -> int:
    """Record that what the holder still holds is overtime from ``since`` on, charged or not; return how many intervals
    are. May be repeated.

    Each open interval ends then, and goes on as another one in its slot, which is flagged.
    """
    rows = UsageInterval.objects.filter(holder_id=holder_id, end=None, overtime=False)
    return sum(_split(row, since, evidence, charged=charged) for row in rows)


def _split(row: UsageInterval, since: datetime, evidence: Mapping[str, Any], *, charged: bool) -> bool:
    with transaction.atomic(), advisory_lock("slot", row.slot):
        ended = services.close_interval(row.key, since, evidence)
        if ended is None or ended.source_end != dict(evidence):
            return False
        names = {field.attname for field in UsageInterval._meta.concrete_fields}
        values = {name: getattr(row, name) for name in names - {"key", "end", "source_end", "estimated_end"}}
        values |= {"start": ended.end, "estimated_start": False, "source_start": dict(evidence)}
        values |= {"overtime": True, "uncharged": not charged, "recorded_at": clock.now()}
        UsageInterval.objects.create(key=uuid5(row.key, "overtime"), **values)
    return True
