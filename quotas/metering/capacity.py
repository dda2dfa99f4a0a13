"""Write operations on the capacity ledger: record what nodes have, and add what the catalogue knows of it.

Both may be repeated: what is as recorded already writes nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.models import Max

from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import dirty_hours, intervals
from quotas.metering.models import CapacityInterval
from quotas.metering.units import FoundUnit, Unit, Value

OpenUnits = dict[Unit, CapacityInterval]


def open_units(cluster: str, nodes: Iterable[str] | None = None) -> OpenUnits:
    """Return the open intervals of a cluster, of all nodes or those given."""
    rows = CapacityInterval.objects.filter(cluster=cluster, end=None)
    if nodes is not None:
        rows = rows.filter(node__in=list(nodes))
    return {row.unit: row for row in rows}


def nodes_with_units(cluster: str) -> set[str]:
    """Return the nodes with an open interval."""
    rows = CapacityInterval.objects.filter(cluster=cluster, end=None)
    return set(rows.order_by().values_list("node", flat=True).distinct())


def record(
    cluster: str,
    evidence: Mapping[str, Mapping[str, Any]],
    found: Callable[[Mapping[Unit, FoundUnit]], Mapping[Unit, FoundUnit]],
    at: datetime,
    *,
    estimated: bool = False,
) -> int:
    """Record what some nodes have from ``at`` on; return how many intervals were ended or begun.

    ``evidence`` is {node: the observation that shows it}. ``found`` is given what the nodes had before, and returns
    every unit that they have now. The value of a unit whose availability alone has changed goes on.
    """
    with transaction.atomic(), advisory_lock("capacity", cluster):
        rows = open_units(cluster, evidence)
        before = {unit: row.found for unit, row in rows.items()}
        after = found(before)
        changed = sorted(unit for unit in before.keys() | after.keys() if before.get(unit) != after.get(unit))
        ended = [unit for unit in changed if unit in before]
        for node, units in groupby(ended, key=lambda unit: unit.node):
            _end([rows[unit] for unit in units], at, evidence[node], estimated=estimated)
        begun = [unit for unit in changed if unit in after]
        last_ends = _last_ends(cluster, {unit.node for unit in begun if unit not in before})
        CapacityInterval.objects.bulk_create(
            interval_of(
                cluster,
                unit,
                after[unit],
                rows.get(unit),
                max(at, last_ends.get(unit, at)),
                evidence[unit.node],
                estimated=estimated,
            )
            for unit in begun
        )
        if changed:
            # What ends without a value counts from its start on: as not offered.
            dirty_hours.mark(cluster, min([at, *(rows[unit].start for unit in ended if rows[unit].value is None)]))
    return len(ended) + len(begun)


def add_values(cluster: str, rows: OpenUnits, values: Mapping[Unit, Value]) -> int:
    """Add what the catalogue knows to those of these intervals that are still open; return how many were written.

    An interval without a value gets it from its start on, and so do earlier ones of the unit that never got one and had
    the same labels. Where another value is known already, a new interval begins now.
    """
    now, evidence = clock.now(), {"kind": "catalogue"}
    with transaction.atomic(), advisory_lock("capacity", cluster):
        there = open_units(cluster)
        rows = {unit: there[unit] for unit in values if unit in there and there[unit].pk == rows[unit].pk}
        other = [unit for unit, row in rows.items() if row.value not in (None, values[unit])]
        written = _add_first_values(cluster, {unit: (row.labels, values[unit]) for unit, row in rows.items()})
        _end([rows[unit] for unit in other], now, evidence)
        CapacityInterval.objects.bulk_create(
            interval_of(cluster, unit, rows[unit].found, rows[unit], now, evidence, value=values[unit])
            for unit in other
        )
    return written + len(other)


def _add_first_values(cluster: str, values: Mapping[Unit, tuple[Mapping[str, Any], Value]]) -> int:
    """Add values to all intervals of these units with these labels that have none; one UPDATE for each value."""
    keys: dict[Value, list[int]] = defaultdict(list)
    starts = []
    for row in CapacityInterval.objects.filter(cluster=cluster, offered=None):
        labels, value = values.get(row.unit, ({}, None))
        if value is not None and row.labels == labels:
            keys[value].append(row.pk)
            starts.append(row.start)
    if starts:
        dirty_hours.mark(cluster, min(starts))
    return sum(CapacityInterval.objects.filter(pk__in=pks).update(**_columns(value)) for value, pks in keys.items())


def _last_ends(cluster: str, nodes: Collection[str]) -> dict[Unit, datetime]:
    """Return when the last interval of each unit of these nodes ended: a list may date a return before that."""
    if not nodes:
        return {}
    rows = CapacityInterval.objects.filter(cluster=cluster, node__in=nodes, end__isnull=False)
    ends = rows.order_by().values_list("node", "kind", "name").annotate(Max("end"))
    return {Unit(node, kind, name): end for node, kind, name, end in ends}


def _end(
    rows: Collection[CapacityInterval], at: datetime, evidence: Mapping[str, Any], *, estimated: bool = False
) -> None:
    """End the intervals at ``at``, or at their start if that is later; in one statement."""
    found = CapacityInterval.objects.filter(pk__in=[row.pk for row in rows])
    intervals.end(found, at, estimated=estimated, source_end=dict(evidence))
    for row in rows:
        row.end = max(row.start, at)


def interval_of(
    cluster: str,
    unit: Unit,
    found: FoundUnit,
    before: CapacityInterval | None,
    at: datetime,
    evidence: Mapping[str, Any],
    *,
    estimated: bool = False,
    value: Value | None = None,
) -> CapacityInterval:
    """Return the interval that begins where ``before`` has ended, with its value if it is the same unit still; it is
    not saved.
    """
    is_same = before is not None and (before.count, before.labels) == (found.count, dict(found.labels))
    value = value or (before.value if before is not None and is_same else None)
    return CapacityInterval(
        cluster_id=cluster,
        node=unit.node,
        kind=unit.kind,
        name=unit.name,
        uuid=found.uuid,
        start=before.end if before is not None and before.end is not None else at,
        estimated_start=estimated,
        count=found.count,
        available=found.available,
        state=found.state,
        labels=dict(found.labels),
        source_start=dict(evidence),
        recorded_at=clock.now(),
        **(_columns(value) if value else {}),
    )


def _columns(value: Value) -> dict[str, Any]:
    return {
        "flavor": value.flavor,
        "gpus_numerator": value.gpus.numerator,
        "gpus_denominator": value.gpus.denominator,
        "offered": value.offered,
    }
