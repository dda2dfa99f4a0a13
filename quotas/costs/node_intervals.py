"""Write operations on the intervals of nodes: what size they had, and by which term they were paid."""

from collections.abc import Iterable, Mapping
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
        known = {node: found_node(row) for node, row in rows.items()}
        changed = sorted(node for node in evidence if known.get(node) != found.get(node))
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


def found_node(row: NodeInterval) -> FoundNode:
    """Return what an interval says of its node."""
    return FoundNode(Term(row.term) if row.term else None, row.cpu_millicores, row.memory_mib)


def _end(row: NodeInterval, at: datetime, evidence: Mapping[str, Any], *, estimated: bool) -> None:
    ended = NodeInterval.objects.filter(pk=row.pk)
    intervals.end(ended, at, estimated=estimated, source_end=dict(evidence))


def _last_ends(cluster: str, nodes: Iterable[str]) -> dict[str, datetime]:
    """Return when the last interval of each node ended: a list may date a return before that."""
    rows = NodeInterval.objects.filter(cluster=cluster, node__in=list(nodes), end__isnull=False)
    return {node: end for node, end in rows.order_by("end").values_list("node", "end") if end}
