"""Write operations on the record of foreign use: begin it and end it. Both may be repeated."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from portal.core import clock
from quotas.metering import dirty_hours, intervals
from quotas.metering.models import ForeignUse


@dataclass(frozen=True)
class Use:
    """What a pod or claim uses of a node's GPUs; the fields are those of ForeignUse."""

    slot: str
    node: str
    kind: str
    name: str
    count: int
    consumer_kind: str
    consumer: str
    uid: str
    namespace: str
    owner_kind: str = ""


@dataclass(frozen=True)
class Start:
    """The observation at which a use began, at this time and revision of the pod or claim."""

    use: Use
    at: datetime
    revision: int
    estimated: bool


def begin(cluster: str, starts: Iterable[Start]) -> None:
    """Record that these uses have begun, each at its time or where the last one of the same pod or claim in the slot
    ended; what is open already stays. Two queries, none without a use.
    """
    starts = list(starts)
    if not starts:
        return
    uids, slots = {one.use.uid for one in starts}, {one.use.slot for one in starts}
    ended = ForeignUse.objects.filter(uid__in=uids, slot__in=slots, end__isnull=False)
    ends = ended.order_by().values_list("uid", "slot").annotate(Max("end"))
    last_ends = {(uid, slot): end for uid, slot, end in ends}
    rows = [
        ForeignUse(
            cluster_id=cluster,
            start=max(one.at, last_ends.get((one.use.uid, one.use.slot), one.at)),
            estimated_start=one.estimated,
            revision_start=one.revision,
            recorded_at=clock.now(),
            **vars(one.use),
        )
        for one in starts
    ]
    with transaction.atomic(savepoint=False):
        ForeignUse.objects.bulk_create(rows, ignore_conflicts=True)
        dirty_hours.mark(cluster, min(row.start for row in rows))


def end(cluster: str, uid: str, slots: Collection[str], at: datetime, revision: int, *, estimated: bool) -> None:
    """Record that a pod's or claim's uses of these slots have ended, at their start if ``at`` is before it."""
    rows = ForeignUse.objects.filter(cluster=cluster, uid=uid, slot__in=slots, end=None)
    with transaction.atomic(savepoint=False):
        if intervals.end(rows, at, estimated=estimated, revision_end=revision):
            dirty_hours.mark(cluster, at)
