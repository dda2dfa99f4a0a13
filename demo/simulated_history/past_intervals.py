"""Write operations on the ledger's past: add what had begun and ended before anything was recorded of it.

Rows are added with their ends, so the grants of an append-only table suffice. What is recorded already stays as it is:
nothing is added from its beginning on (``Recorded``). Each function takes one query to check, and one to add.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Min, Model

from portal.core import clock
from portal.core.errors import Invalid
from portal.core.locks import advisory_lock
from quotas.costs import node_intervals
from quotas.costs.models import NodeInterval
from quotas.costs.node_intervals import FoundNode
from quotas.metering import capacity, dirty_hours, services
from quotas.metering.foreign import Use
from quotas.metering.hold_use import NO_HOLD
from quotas.metering.models import CapacityInterval, ForeignUse, HoldUse, UsageInterval
from quotas.metering.services import Begin
from quotas.metering.units import FoundUnit, Unit, Value

BATCH = 1000


@dataclass(frozen=True)
class PastHold:
    """What was held from ``begin.at`` to ``end``."""

    begin: Begin
    end: datetime


@dataclass(frozen=True)
class PastCapacity:
    """What there was of a unit in ``[start, end)``, with its value."""

    unit: Unit
    found: FoundUnit
    value: Value
    start: datetime
    end: datetime


@dataclass(frozen=True)
class PastUse:
    """What a pod or claim used in ``[start, end)``."""

    use: Use
    start: datetime
    end: datetime


class PastPods(NamedTuple):
    """That an allocation had a pod in ``[start, end)``."""

    holder_id: UUID
    start: datetime
    end: datetime


class PastNode(NamedTuple):
    """What a node was in ``[start, end)``."""

    node: str
    found: FoundNode
    start: datetime
    end: datetime


def add_holds(cluster: str, holds: Sequence[PastHold], evidence: Mapping[str, Any]) -> int:
    """Add intervals of the usage ledger; return how many. Raises Invalid if one has no time, overlaps another in its
    slot, or ends after the slot's first recorded interval began.
    """
    _check(((one.begin.slot, one.begin.at, one.end) for one in holds), _first(UsageInterval, cluster, "slot"))
    rows = [services.interval_of(one.begin) for one in holds]
    for row, hold in zip(rows, holds, strict=True):
        row.end, row.source_end = hold.end, dict(evidence)
    return _add(cluster, UsageInterval, rows)


def add_capacity(cluster: str, intervals: Sequence[PastCapacity], evidence: Mapping[str, Any]) -> int:
    """Add intervals of the capacity ledger; return how many. Raises Invalid as ``add_holds`` does, for units."""
    first = _first(CapacityInterval, cluster, "node", "kind", "name")
    _check(((tuple(one.unit), one.start, one.end) for one in intervals), first)
    rows = []
    for one in intervals:
        row = capacity.interval_of(cluster, one.unit, one.found, None, one.start, evidence, value=one.value)
        row.end, row.source_end = one.end, dict(evidence)
        rows.append(row)
    return _add(cluster, CapacityInterval, rows)


def add_foreign_use(cluster: str, uses: Sequence[PastUse]) -> int:
    """Add use without an allocation; return how many. Raises Invalid as ``add_holds`` does, for slot and uid."""
    first = _first(ForeignUse, cluster, "slot", "uid")
    _check((((one.use.slot, one.use.uid), one.start, one.end) for one in uses), first)
    now = clock.now()
    rows = [
        ForeignUse(
            cluster_id=cluster,
            start=one.start,
            end=one.end,
            revision_start=0,
            revision_end=0,
            recorded_at=now,
            **asdict(one.use),
        )
        for one in uses
    ]
    return _add(cluster, ForeignUse, rows)


def add_pods(cluster: str, since: datetime, times: Collection[PastPods]) -> None:
    """Add times of allocations that ended before anything was recorded, as if they were recorded from ``since`` on."""
    now = clock.now()
    HoldUse.objects.bulk_create(
        HoldUse(
            cluster_id=cluster,
            holder_id=one.holder_id,
            start=one.start,
            end=one.end,
            revision_start=0,
            revision_end=0,
            recorded_at=now,
        )
        for one in (PastPods(NO_HOLD, since, since), *times)
    )


def add_nodes(cluster: str, nodes: Sequence[PastNode], evidence: Mapping[str, Any]) -> int:
    """Add intervals of nodes that have ended before anything was recorded of them; return how many."""
    rows = [
        NodeInterval(
            cluster_id=cluster,
            node=one.node,
            term=one.found.term or "",
            cpu_millicores=one.found.cpu_millicores,
            memory_mib=one.found.memory_mib,
            start=one.start,
            end=one.end,
            source_start=dict(evidence),
            source_end=dict(evidence),
            recorded_at=clock.now(),
        )
        for one in nodes
    ]
    with advisory_lock("nodes", cluster):
        return _add(cluster, NodeInterval, rows)


def first_nodes(cluster: str) -> dict[str, tuple[FoundNode, datetime]]:
    """Return what each node was when it was first recorded, and when that was; one query."""
    rows = NodeInterval.objects.filter(cluster=cluster).order_by("node", "start").distinct("node")
    return {row.node: (node_intervals.found_node(row), row.start) for row in rows}


def _first(model: type[Model], cluster: str, *names: str) -> dict[Any, datetime]:
    """Return when the first interval of each slot or unit began."""
    rows = model._default_manager.filter(cluster=cluster).order_by().values_list(*names).annotate(Min("start"))
    return {key[0] if len(names) == 1 else tuple(key): start for *key, start in rows}


def _check(spans: Iterable[tuple[Any, datetime, datetime]], first: Mapping[Any, datetime]) -> None:
    """Raise Invalid for the first span, of a slot or unit, that may not be added."""
    last: dict[Any, datetime] = {}
    for key, start, end in sorted(spans, key=lambda one: (one[1], one[2])):
        recorded = first.get(key)
        if start >= end:
            raise Invalid({"end": [f"What {key} had from {start:%F %T} has to end later."]})
        if start < last.get(key, start):
            raise Invalid({"start": [f"{key} has another interval until {last[key]:%F %T}; begin then or later."]})
        if recorded and end > recorded:
            raise Invalid({"end": [f"{key} is recorded since {recorded:%F %T}; end then or before."]})
        last[key] = end


def _add(cluster: str, model: Any, rows: Collection[Any]) -> int:
    if rows:
        with transaction.atomic(savepoint=False):
            model.objects.bulk_create(rows, batch_size=BATCH)
            dirty_hours.mark(cluster, min(row.start for row in rows), max(row.end for row in rows))
    return len(rows)
