"""Reads the ledger for tests: its intervals by holder, with the holders' names of `tests.support.cluster.usage`."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from uuid import UUID

from allocations.models import Allocation
from quotas.metering.models import UsageInterval
from tests.support.cluster.usage import Holder


def intervals(namespaces: Collection[str], **only: object) -> dict[Holder, list[UsageInterval]]:
    """Return all intervals of the namespaces by holder, oldest first."""
    rows = Allocation.objects.filter(project__namespace__in=namespaces)
    names: dict[UUID, str] = dict(rows.values_list("id", "name"))
    found: dict[Holder, list[UsageInterval]] = defaultdict(list)
    for row in UsageInterval.objects.filter(namespace__in=namespaces, **only).order_by("start", "key"):
        name = names.get(row.holder_id)
        found[Holder(row.namespace, "allocation" if name else "job", name or str(row.holder_id))].append(row)
    return found


def open_counts(namespaces: Collection[str]) -> Counter[Holder]:
    """Return the slices that are being charged now, by holder."""
    found = intervals(namespaces, end=None)
    return Counter({holder: sum(row.count for row in rows) for holder, rows in found.items()})


def count_at(rows: Iterable[UsageInterval], moment: float) -> int:
    """Return the slices charged at a moment, in seconds since the epoch."""
    return sum(
        row.count
        for row in rows
        if row.start.timestamp() <= moment and (row.end is None or moment < row.end.timestamp())
    )


def overlaps(rows: Iterable[UsageInterval]) -> list[str]:
    """Return a sentence for each slot with overlapping intervals."""
    last: dict[str, UsageInterval] = {}
    found = []
    for row in sorted(rows, key=lambda row: (row.slot, row.start)):
        before = last.get(row.slot)
        if before and (before.end is None or row.start < before.end):
            found.append(f"slot {row.slot} is charged twice from {row.start:%T}")
        if before is None or (before.end and (row.end is None or row.end > before.end)):
            last[row.slot] = row
    return found
