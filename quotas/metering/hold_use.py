"""Write operations on the record of when holds had pods: begin, end, and since when. All may be repeated."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from portal.core import clock
from quotas.metering import intervals
from quotas.metering.models import HoldUse

NO_HOLD = UUID(int=0)


class Sighting(NamedTuple):
    """The observation of a pod, at this time and revision."""

    at: datetime
    revision: int
    estimated: bool


def begin(cluster: str, holders: Collection[UUID], seen: Sighting) -> None:
    """Record that these holds have a pod from now on; what is open already stays. One statement, if there is a hold."""
    rows = [
        HoldUse(
            cluster_id=cluster,
            holder_id=holder,
            start=seen.at,
            estimated_start=seen.estimated,
            revision_start=seen.revision,
            recorded_at=clock.now(),
        )
        for holder in holders
    ]
    HoldUse.objects.bulk_create(rows, ignore_conflicts=True)


def end(cluster: str, holders: Collection[UUID], seen: Sighting) -> None:
    """Record that these holds have no pod any more, from their start if that is later. One statement, none without a
    hold.
    """
    if holders:
        rows = HoldUse.objects.filter(cluster=cluster, holder_id__in=holders, end=None)
        intervals.end(rows, seen.at, estimated=seen.estimated, revision_end=seen.revision)


def recorded_from(cluster: str, seen: Sighting) -> None:
    """Record that when holds of the cluster have pods is recorded from then on, unless something of it is already."""
    if not HoldUse.objects.filter(cluster=cluster).exists():
        begin(cluster, [NO_HOLD], seen)
        end(cluster, [NO_HOLD], seen)
