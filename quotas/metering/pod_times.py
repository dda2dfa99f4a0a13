"""Reads when holds had pods, and since when that is recorded."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from quotas.metering.models import HoldUse


def of_holder(holder_id: UUID) -> list[tuple[datetime, datetime | None]]:
    """Return the times in which an allocation had a pod, in order; the end is None while it has one. One query."""
    return list(HoldUse.objects.filter(holder_id=holder_id).order_by("start", "end").values_list("start", "end"))


def recorded_since(clusters: Collection[str]) -> dict[str, datetime]:
    """Return since when the pods of each cluster's holds are recorded, of those where they are; a query for each."""
    rows = HoldUse.objects.order_by("start").values_list("start", flat=True)
    found = {cluster: rows.filter(cluster=cluster).first() for cluster in clusters}
    return {cluster: at for cluster, at in found.items() if at}
