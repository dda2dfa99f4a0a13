"""The only writer of the ledger. Two ways in: an interval opens, and it ends. Both may be said any number
of times.

Keys are computed from the observed fact (uuid5 of what was seen), so the same observation made twice, by
two workers or after a restore, is one row. An end that nobody saw is the last sighting of the thing held,
with `estimated`: the error is then bounded by the time nobody looked, and always in the holder's favour.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max
from django.db.models.functions import Greatest

from portal.core import clock
from portal.core.errors import Retryable
from portal.core.locks import advisory_lock
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class Attribution:
    """What is held and for whom, copied into the ledger as it is now. `gpu_share` is one slice's part of a
    GPU; `unused` marks what a queued Job has reserved and none of its pods uses.
    """

    offering: str
    flavor: str
    kind: str
    gpu_share: Fraction
    cluster: str
    department: str
    team: str
    project: str
    member: str
    namespace: str
    node: str = ""
    device_uuid: str = ""
    unused: bool = False


class SlotHeld(Retryable):
    """Another interval is open on the slot: its end has to be observed first. Try again after that."""

    def __init__(self, slot: str, holder: UUID) -> None:
        super().__init__(f"{slot} is still held by allocation {holder}; its interval has to end before another opens")
        self.slot = slot
        self.holder = holder


def open_interval(
    key: UUID,
    allocation: UUID,
    slot: str,
    at: datetime,
    attribution: Attribution,
    quantity: int,
    evidence: Mapping[str, Any],
    estimated: bool = False,
) -> UsageInterval:
    """`allocation` holds `quantity` slices in `slot` from `at` on.

    1. A key that is known is returned as it is, ended or not.
    2. SlotHeld if another interval is open on the slot.
    3. A start before the slot's last end is moved to it, so that no second is billed twice.
    """
    with transaction.atomic(), advisory_lock("slot", slot):
        known = UsageInterval.objects.filter(pk=key).first()
        if known:
            return known
        holder = UsageInterval.objects.filter(slot=slot, end=None).first()
        if holder:
            raise SlotHeld(slot, holder.allocation)
        last_end = UsageInterval.objects.filter(slot=slot).aggregate(last=Max("end"))["last"]
        values = asdict(attribution)
        share: Fraction = values.pop("gpu_share")
        cluster = values.pop("cluster")
        return UsageInterval.objects.create(
            key=key,
            allocation=allocation,
            cluster_id=cluster,
            slot=slot,
            start=max(at, last_end) if last_end else at,
            estimated_start=estimated,
            gpu_share_numerator=share.numerator,
            gpu_share_denominator=share.denominator,
            count=quantity,
            source_start=dict(evidence),
            recorded_at=clock.now(),
            **values,
        )


def close_interval(
    target: UUID | str, at: datetime, evidence: Mapping[str, Any], estimated: bool = False
) -> UsageInterval | None:
    """The interval with key `target` (a UUID), or the one open on slot `target` (text), ends at `at`.

    The first end counts: a later call changes nothing. An end before the start becomes the start. Returns
    the interval as it now is (for a slot that nobody holds, its last one), or None when there was none.
    """
    ends = {"key": target} if isinstance(target, UUID) else {"slot": target}
    with transaction.atomic():
        row = UsageInterval.objects.filter(**ends).order_by(F("end").desc(nulls_first=True)).first()
        if row is None:
            return None
        UsageInterval.objects.filter(pk=row.pk, end=None).update(
            end=Greatest(F("start"), at), source_end=dict(evidence), estimated_end=estimated
        )
        row.refresh_from_db()
    return row
