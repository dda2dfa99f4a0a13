"""Reads when holds had pods, and since when that is recorded."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from portal.core.reading import read_rows
from quotas.metering.models import HoldUse

_FIRST = """
    SELECT slug, (SELECT start FROM metering_holduse WHERE cluster = slug ORDER BY start LIMIT 1) AS since
    FROM unnest(%s::text[]) AS slug
"""


def of_holder(holder_id: UUID) -> list[tuple[datetime, datetime | None]]:
    """Return the times in which an allocation had a pod, in order; the end is None while it has one. One query."""
    return list(HoldUse.objects.filter(holder_id=holder_id).order_by("start", "end").values_list("start", "end"))


def recorded_since(clusters: Collection[str]) -> dict[str, datetime]:
    """Return since when the pods of each cluster's holds are recorded, of those where they are; one query, none
    without a cluster.
    """
    rows = read_rows(_FIRST, [sorted(clusters)]) if clusters else []
    return {row.slug: row.since for row in rows if row.since}
