"""Reads what the usage ledger has of one allocation, as far as its time and phase depend on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, Q, Subquery

from allocations.models import Allocation
from portal.core.reading import Columns, Rows, read_tables
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class HeldIntervals:
    """The intervals of an allocation that are open or have ended since its ``held_until``, and when the first began."""

    latest: Sequence[UsageInterval]
    first_start: datetime | None

    @property
    def by_open_slot(self) -> dict[str, UsageInterval]:
        return {interval.slot: interval for interval in self.latest if interval.end is None}


def parts(allocation: UUID | str) -> tuple[Rows, Columns]:
    """Return what to read of the ledger (``portal.core.reading``)."""
    own = UsageInterval.objects.filter(holder_id=allocation)
    counted = Allocation.objects.filter(pk=allocation).order_by()
    is_new = Q(end__gt=Subquery(counted.values("held_until"))) | Exists(counted.filter(held_until=None))
    return Rows(own.filter(Q(end=None) | is_new)), Columns(own.order_by("start")[:1], ("start",))


def of_parts(latest: Sequence[UsageInterval], first: Sequence[Any]) -> HeldIntervals:
    """Return the intervals from what was read of ``parts``."""
    return HeldIntervals(latest, datetime.fromisoformat(first[0].start) if first else None)


def read(allocation: UUID) -> HeldIntervals:
    """Return the intervals as they are now; one query."""
    return of_parts(*read_tables(*parts(allocation)))
