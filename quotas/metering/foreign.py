"""Write operations on the record of foreign use: begin it and end it. Both may be repeated."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db.models import Max
from django.db.models.functions import Greatest

from portal.core import clock
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


def begin(cluster: str, uses: Iterable[Use], at: datetime, revision: int, *, estimated: bool) -> None:
    """Record that these uses have begun, at ``at`` or where the last one of the same pod or claim in the slot ended;
    what is open already stays.
    """
    uses = list(uses)
    ended = ForeignUse.objects.filter(uid__in={use.uid for use in uses}, slot__in={use.slot for use in uses})
    last_ends = {(uid, slot): end for uid, slot, end in ended.values_list("uid", "slot").annotate(Max("end")) if end}
    rows = [
        ForeignUse(
            cluster_id=cluster,
            start=max(at, last_ends.get((use.uid, use.slot), at)),
            estimated_start=estimated,
            revision_start=revision,
            recorded_at=clock.now(),
            **asdict(use),
        )
        for use in uses
    ]
    ForeignUse.objects.bulk_create(rows, ignore_conflicts=True)


def end(cluster: str, uid: str, slots: Collection[str], at: datetime, revision: int, *, estimated: bool) -> None:
    """Record that a pod's or claim's uses of these slots have ended, at their start if ``at`` is before it."""
    rows = ForeignUse.objects.filter(cluster=cluster, uid=uid, slot__in=slots, end=None)
    rows.update(end=Greatest("start", at), revision_end=revision, estimated_end=estimated)
