"""Infers capacity from use: a GPU was there when something began to use it, though none was recorded yet."""

import json
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from portal.core import clock
from portal.core.locks import advisory_lock
from quotas.metering import dirty_hours

RECENT = timedelta(days=2)
"""How long after its end a use is still considered; far longer than anything is recorded late."""

# A use that began while there was capacity, and outlives it, infers nothing: it is charged beyond what there is.
_INFER = """
    WITH used AS (
        SELECT node, 'gpu' AS kind, split_part(split_part(slot, '/', 3), '-mig-', 1) AS name, start
        FROM metering_usageinterval
        WHERE cluster = %(cluster)s AND node <> '' AND split_part(slot, '/', 2) = node
              AND ("end" IS NULL OR "end" > %(after)s)
        UNION ALL
        SELECT node, 'resource', substring(slot FROM '^[^/]*/[^/]*/(.*)$'), start
        FROM metering_usageinterval
        WHERE cluster = %(cluster)s AND node <> '' AND starts_with(slot, %(cluster)s || '/pod:')
              AND ("end" IS NULL OR "end" > %(after)s)
        UNION ALL
        SELECT node, kind, CASE kind WHEN 'gpu' THEN split_part(name, '-mig-', 1) ELSE name END, start
        FROM metering_foreignuse
        WHERE cluster = %(cluster)s AND ("end" IS NULL OR "end" > %(after)s)
    ),
    recorded AS (SELECT min(start) AS since FROM metering_capacityinterval WHERE cluster = %(cluster)s),
    uncovered AS (
        SELECT next.id, min(greatest(used.start, recorded.since)) AS start
        FROM recorded CROSS JOIN used CROSS JOIN LATERAL (
            SELECT id, start FROM metering_capacityinterval AS one
            WHERE one.cluster = %(cluster)s AND (one.node, one.kind, one.name) = (used.node, used.kind, used.name)
                  AND one.start > used.start
            ORDER BY one.start LIMIT 1
        ) AS next
        WHERE next.start > recorded.since AND NOT EXISTS (
            SELECT FROM metering_capacityinterval AS one
            WHERE one.cluster = %(cluster)s AND (one.node, one.kind, one.name) = (used.node, used.kind, used.name)
                  AND one.start <= used.start AND (one."end" IS NULL OR one."end" > used.start)
        )
        GROUP BY next.id
    )
    INSERT INTO metering_capacityinterval (
        cluster, node, kind, name, uuid, start, "end", estimated_start, estimated_end, inferred, count, available,
        state, labels, flavor, gpus_numerator, gpus_denominator, offered, source_start, source_end, recorded_at
    )
    SELECT cluster, node, kind, name, uuid, uncovered.start, next.start, true, false, true, count, available, state,
           labels, flavor, gpus_numerator, gpus_denominator, offered, %(evidence)s, %(evidence)s, %(now)s
    FROM uncovered JOIN metering_capacityinterval AS next USING (id)
    RETURNING start
"""


def infer(cluster: str) -> int:
    """Record that units had capacity from when a use of them began, where none was recorded, until their next interval;
    return how many intervals were added. May be repeated; one query.

    An inferred interval is a copy of the next one. Nothing is inferred before the cluster's capacity was recorded, nor
    from a count on a flavor, which names no node.
    """
    now = clock.now()
    values: dict[str, Any] = {
        "cluster": cluster,
        "after": now - RECENT,
        "now": now,
        "evidence": json.dumps({"kind": "use"}),
    }
    with transaction.atomic(), advisory_lock("capacity", cluster), connection.cursor() as cursor:
        cursor.execute(_INFER, values)
        starts = [start for (start,) in cursor.fetchall()]
        if starts:
            dirty_hours.mark(cluster, min(starts))
    return len(starts)
