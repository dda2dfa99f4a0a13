"""The statements that write the mirror: rows of objects, and the positions of watches."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from allocations.cluster.kinds import Kind
from allocations.domain.objects import Ref
from allocations.models import MirrorObject
from portal.core.writing import WriteStatement

Position = tuple[Kind, int, datetime]
"""A kind, and the revision and time up to which the mirror of it is complete."""
WRITE = """
    INSERT INTO allocations_mirrorobject
        (cluster_id, kind, namespace, name, uid, resource_version, digest, allocation, deleting, facts, seen_at)
    SELECT %s, form.* FROM jsonb_to_recordset(%s::jsonb) AS form (
        kind text, namespace text, name text, uid text, resource_version bigint, digest text, allocation text,
        deleting boolean, facts jsonb, seen_at timestamptz
    )
    ON CONFLICT (cluster_id, kind, namespace, name) DO UPDATE
    SET uid = excluded.uid, resource_version = excluded.resource_version, digest = excluded.digest,
        allocation = excluded.allocation, deleting = excluded.deleting, facts = excluded.facts,
        seen_at = excluded.seen_at
    RETURNING 1 AS written
"""
DELETE = """
    DELETE FROM allocations_mirrorobject
    USING unnest(%s::text[], %s::text[], %s::text[]) AS gone (kind, namespace, name)
    WHERE cluster_id = %s AND allocations_mirrorobject.kind = gone.kind
        AND allocations_mirrorobject.namespace = gone.namespace AND allocations_mirrorobject.name = gone.name
    RETURNING 1 AS deleted
"""
SYNC = """
    WITH epoch AS (
        SELECT FROM allocations_watchepoch WHERE cluster_id = %s AND number = %s FOR UPDATE
    )
    INSERT INTO allocations_watchstate (cluster_id, kind, resource_version, synced_at)
    SELECT %s, state.* FROM unnest(%s::text[], %s::bigint[], %s::timestamptz[]) AS state
    WHERE %s::int IS NULL OR EXISTS (SELECT FROM epoch)
    ON CONFLICT (cluster_id, kind) DO UPDATE
    SET resource_version = excluded.resource_version, synced_at = excluded.synced_at
    RETURNING kind
"""


def writes(cluster: str, rows: Mapping[Ref, MirrorObject | None]) -> Iterator[WriteStatement]:
    """Yield the statements that write these rows of a cluster's mirror, and that delete those of None."""
    if written := [_values(row) for row in rows.values() if row is not None]:
        yield WriteStatement(WRITE, [cluster, json.dumps(written)], ("written",))
    if gone := [ref for ref, row in rows.items() if row is None]:
        kinds, namespaces, names = map(list, zip(*gone, strict=True))
        yield WriteStatement(DELETE, [kinds, namespaces, names, cluster], ("deleted",))


def _values(row: MirrorObject) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "uid": row.uid,
        "resource_version": row.resource_version,
        "digest": row.digest,
        "allocation": row.allocation,
        "deleting": row.deleting,
        "facts": row.facts,
        "seen_at": row.seen_at.isoformat(),
    }


def sync(cluster: str, positions: Sequence[Position], epoch: int | None = None) -> WriteStatement:
    """Return the statement that records positions, each of another kind; it returns nothing if there is an ``epoch``
    and it is over.
    """
    kinds, revisions, times = map(list, zip(*positions, strict=True))
    names = [kind.name for kind in kinds]
    return WriteStatement(SYNC, [cluster, epoch, cluster, names, revisions, times, epoch], ("kind",))
