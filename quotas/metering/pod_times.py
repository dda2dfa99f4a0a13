"""Reads when holds had pods, and since when that is recorded."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

from quotas.metering.models import HoldUse

_FIRST = """
    SELECT slug, (SELECT start FROM metering_holduse WHERE cluster = slug ORDER BY start LIMIT 1)
    FROM unnest(%s::text[]) AS slug
"""


def of_holder(holder_id: UUID) -> list[tuple[datetime, datetime | None]]:
    """Return the times in which an allocation had a pod, in order; the end is None while it has one. One query."""
    return list(HoldUse.objects.filter(holder_id=holder_id).order_by("start", "end").values_list("start", "end"))


def recorded_since(clusters: Collection[str]) -> dict[str, datetime]:
    """Return since when the pods of each cluster's holds are recorded, of those where they are; one query, none
    without a cluster.
    """
    if not clusters:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FIRST, [sorted(clusters)])
        return {cluster: at for cluster, at in cursor.fetchall() if at}
