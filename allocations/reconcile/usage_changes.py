"""The nodes whose use by pods and claims has changed since it was counted: the watcher adds them, the count takes them.

A node may be added again while it is counted. It is then counted once more, since the number of its ``changes``
differs.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from portal.core import clock

MAX_NODES = 100
"""So many nodes are counted at once."""
ADD = """
    INSERT INTO allocations_usagechange AS change (cluster_id, node, due_at, changes)
    SELECT %(cluster)s, node, coalesce(%(held)s::timestamptz, statement_timestamp()) + %(after)s::interval, 1
    FROM unnest(%(nodes)s::text[]) AS node
    ON CONFLICT (cluster_id, node) DO UPDATE
    SET due_at = least(change.due_at, excluded.due_at), changes = change.changes + 1
"""
DUE = """
    SELECT node, changes FROM allocations_usagechange
    WHERE cluster_id = %(cluster)s AND due_at <= coalesce(%(held)s::timestamptz, statement_timestamp())
    ORDER BY due_at, node LIMIT %(most)s
"""
# The rows are locked in the order of ADD. One that another transaction changes at this moment is waited for, and then
# looked at anew: without the lock it would be deleted with its change.
COUNTED = """
    WITH counted AS (
        SELECT change.id, again FROM allocations_usagechange AS change
        JOIN unnest(%(nodes)s::text[], %(changes)s::bigint[], %(again)s::bool[]) AS one (node, changes, again)
            ON change.node = one.node AND change.changes = one.changes
        WHERE change.cluster_id = %(cluster)s
        ORDER BY change.node FOR UPDATE OF change
    ), gone AS (
        DELETE FROM allocations_usagechange USING counted WHERE allocations_usagechange.id = counted.id AND NOT again
    )
    UPDATE allocations_usagechange AS change
    SET due_at = coalesce(%(held)s::timestamptz, statement_timestamp()) + %(after)s::interval
    FROM counted WHERE change.id = counted.id AND again
"""
NEXT = "SELECT min(due_at) FROM allocations_usagechange WHERE cluster_id = %(cluster)s"


def add(cluster: str, nodes: Iterable[str], after: timedelta = timedelta(0)) -> None:
    """Have the use of these nodes counted again after this time. One statement."""
    # Sorted, so that two transactions that add the same nodes take the row locks in one order.
    _execute(ADD, cluster, nodes=sorted(set(nodes)), after=after)


def due(cluster: str) -> dict[str, int]:
    """Return up to MAX_NODES nodes to count now, each with the number of its changes."""
    return dict(_execute(DUE, cluster, most=MAX_NODES))


def counted(cluster: str, changes: Mapping[str, int], again: Collection[str], after: timedelta) -> datetime | None:
    """Remove these nodes unless they changed meanwhile; those of ``again`` are due again after this time. Return when
    the next node is due, or None. Two statements.
    """
    numbers = {"changes": list(changes.values()), "again": [node in again for node in changes], "after": after}
    if changes:
        _execute(COUNTED, cluster, nodes=list(changes), **numbers)
    [[at]] = _execute(NEXT, cluster)
    next_at: datetime | None = at
    return next_at


def _execute(sql: str, cluster: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"cluster": cluster, "held": clock.frozen_at(), **values})
        return cursor.fetchall() if cursor.description else []
