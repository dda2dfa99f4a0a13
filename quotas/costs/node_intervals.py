"""Write operations on the intervals of nodes: what size they had, and by which term they were paid."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.costs.models import NodeInterval
from quotas.costs.node_terms import Term
from quotas.metering import dirty_hours, intervals


class FoundNode(NamedTuple):
    """What a node is now; the fields are those of NodeInterval."""

    term: Term | None
    cpu_millicores: int
    memory_mib: int


class PastNode(NamedTuple):
    """What a node was in ``[start, end)``."""

    node: str
    found: FoundNode
    start: datetime
    end: datetime


def open_nodes(cluster: str) -> set[str]:
    """Return the nodes with an open interval."""
    return set(NodeInterval.objects.filter(cluster=cluster, end=None).order_by().values_list("node", flat=True))


def record(
    cluster: str,
    evidence: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, FoundNode],
    at: datetime,
    *,
    estimated: bool = False,
) -> int:
    """Record what these nodes are from ``at`` on; return how many intervals were ended or begun. ``evidence`` is {node:
    the observation that shows it}; a node that is not ``found`` is gone. Repeating it changes nothing.
    """
    if not evidence:
        return 0
    with transaction.atomic(), advisory_lock("nodes", cluster):
        rows = {row.node: row for row in NodeInterval.objects.filter(cluster=cluster, end=None, node__in=evidence)}
        changed = sorted(node for node in evidence if _of_row(rows.get(node)) != found.get(node))
        for node in changed:
            if row := rows.get(node):
                _end(row, at, evidence[node], estimated=estimated)
        begun = [node for node in changed if node in found]
        last_ends = _last_ends(cluster, begun)
        NodeInterval.objects.bulk_create(
            NodeInterval(
                cluster_id=cluster,
                node=node,
                term=found[node].term or "",
                cpu_millicores=found[node].cpu_millicores,
                memory_mib=found[node].memory_mib,
                start=max(at, last_ends.get(node, at)),
                estimated_start=estimated,
                source_start=dict(evidence[node]),
                recorded_at=clock.now(),
            )
            for node in begun
        )
        if changed:
            dirty_hours.mark(cluster, at)
    return len(changed)


def add_past(cluster: str, nodes: Sequence[PastNode], evidence: Mapping[str, Any]) -> int:
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
    with transaction.atomic(), advisory_lock("nodes", cluster):
        NodeInterval.objects.bulk_create(rows)
        if rows:
            dirty_hours.mark(cluster, min(one.start for one in rows), max(one.end for one in nodes))
    return len(rows)


def first_nodes(cluster: str) -> dict[str, tuple[FoundNode, datetime]]:
    """Return what each node was when it was first recorded, and when that was; one query."""
    rows = NodeInterval.objects.filter(cluster=cluster).order_by("node", "start").distinct("node")
    return {row.node: (_found(row), row.start) for row in rows}


def _found(row: NodeInterval) -> FoundNode:
    return FoundNode(Term(row.term) if row.term else None, row.cpu_millicores, row.memory_mib)


def _of_row(row: NodeInterval | None) -> FoundNode | None:
    return _found(row) if row else None


def _end(row: NodeInterval, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> None:
    ended = NodeInterval.objects.filter(pk=row.pk)
    intervals.end(ended, at, estimated=estimated, source_end=dict(evidence))


def _last_ends(cluster: str, nodes: Iterable[str]) -> dict[str, datetime]:
    """Return when the last interval of each node ended: a list may date a return before that."""
    rows = NodeInterval.objects.filter(cluster=cluster, node__in=list(nodes), end__isnull=False)
    return {node: end for node, end in rows.order_by("end").values_list("node", "end") if end}
