"""The records of what the portal applied: the API server's last response for each object."""

from collections.abc import Iterable
from typing import Any

from django.db import connection

from allocations.domain.objects import Applied, Ref
from allocations.models import AppliedObject
from allocations.reconcile.engine.plan import DELETED
from portal.core import clock
from portal.core.reading import Columns, read_tables
from portal.workqueue.targets import Target

COLUMNS = ("kind", "namespace", "name", "uid", "resource_version", "intent", "digest")
# One statement: bulk_create would begin and commit a transaction around it.
RECORD = """
    INSERT INTO allocations_appliedobject
        (cluster_id, kind, namespace, name, target, uid, resource_version, intent, digest, applied_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (cluster_id, kind, namespace, name) DO UPDATE
    SET target = excluded.target, uid = excluded.uid, resource_version = excluded.resource_version,
        intent = excluded.intent, digest = excluded.digest, applied_at = excluded.applied_at
"""
DELETED_AT_SERVER = """
    UPDATE allocations_appliedobject SET intent = %s
    WHERE cluster_id = %s AND kind = %s AND namespace = %s AND name = %s AND uid = %s
"""
FORGET = """
    DELETE FROM allocations_appliedobject AS record
    USING unnest(%s::text[], %s::text[], %s::text[]) AS gone (kind, namespace, name)
    WHERE record.cluster_id = %s AND record.kind = gone.kind AND record.namespace = gone.namespace
        AND record.name = gone.name
"""


def record_applied(cluster: str, ref: Ref, response: dict[str, Any], intent: str, fields: str, target: Target) -> None:
    """Record the API server's response to an apply for ``target``. ``intent`` and ``fields`` are digests: of the
    manifest, and of the fields that the portal owns.
    """
    uid, resource_version = response["metadata"]["uid"], int(response["metadata"]["resourceVersion"])
    with connection.cursor() as cursor:
        cursor.execute(RECORD, [cluster, *ref, target, uid, resource_version, intent, fields, clock.now()])


def record_deleted(cluster: str, ref: Ref, uid: str) -> None:
    """Record that the API server accepted the deletion of the object with this uid."""
    with connection.cursor() as cursor:
        cursor.execute(DELETED_AT_SERVER, [DELETED, cluster, *ref, uid])


def part(target: Target) -> Columns:
    """Return what to read of a target's records (``portal.core.reading``)."""
    return Columns(AppliedObject.objects.filter(target=target), COLUMNS)


def of_rows(rows: Iterable[Any]) -> dict[Ref, Applied]:
    """Return the records of rows with COLUMNS."""
    refs = ((Ref(row.kind, row.namespace, row.name), row) for row in rows)
    return {ref: Applied(ref, row.uid, row.resource_version, row.intent, row.digest) for ref, row in refs}


def applied_objects(target: Target) -> dict[Ref, Applied]:
    """Return what the portal applied for a target; one query."""
    return of_rows(*read_tables(part(target)))


def part_of(cluster: str, ref: Ref) -> Columns:
    """Return what to read of one object's record."""
    own = AppliedObject.objects.filter(cluster=cluster, kind=ref.kind, namespace=ref.namespace, name=ref.name)
    return Columns(own, COLUMNS)


def forget(cluster: str, refs: Iterable[Ref]) -> None:
    """Delete the records of applied objects; one statement, and none if there are no ``refs``."""
    if gone := list(refs):
        with connection.cursor() as cursor:
            cursor.execute(FORGET, [*map(list, zip(*gone, strict=True)), cluster])
