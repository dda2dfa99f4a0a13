"""Write operations on the usage ledger: open an interval, and close it. Both may be repeated.

Keys are computed from the observation (uuid5), so the same observation recorded twice, by two workers or after a
restore, is one row. If nobody observed an end, the last sighting is recorded with `estimated`: the error is at most the
time between two observations, and always in the holder's favour.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from portal.core import clock
from portal.core.errors import Retryable
from portal.core.locks import advisory_lock
from portal.core.reading import Rows, read_tables
from quotas.metering import dirty_hours
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class Attribution:
    """Who an interval is charged to and what is held, as it is now. `gpu_share` is what one slice takes of a GPU;
    `unused` marks what a queued Job has reserved and none of its pods uses.
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
    labels: Mapping[str, str] = field(default_factory=dict)


class SlotHeld(Retryable):
    """Another interval is open on the slot; retry after its end was observed."""

    def __init__(self, slot: str, holder: UUID) -> None:
        super().__init__(f"{slot} is still held by {holder}; its interval has to end before another opens")
        self.slot = slot
        self.holder = holder


def open_interval(
    key: UUID,
    holder_id: UUID,
    slot: str,
    at: datetime,
    attribution: Attribution,
    quantity: int,
    evidence: Mapping[str, Any],
    estimated: bool = False,
) -> UsageInterval:
    """Open the interval in which `holder_id` holds `quantity` slices in `slot`, from `at` on; return it.

    1. An interval with this key is returned as it is, ended or not.
    2. Raises SlotHeld if another interval is open on the slot.
    3. A start before the slot's last end is moved to it, so that no second is charged twice.
    """
    # Without a savepoint, since SlotHeld, after which a caller goes on, is raised outside of the block.
    with transaction.atomic(savepoint=False), advisory_lock("slot", slot):
        of_slot = UsageInterval.objects.filter(slot=slot).order_by(F("end").desc(nulls_first=True))
        known, latest = read_tables(Rows(UsageInterval.objects.filter(pk=key)), Rows(of_slot[:1]))
        found: UsageInterval | None = next(iter(known), None)
        last: UsageInterval | None = next(iter(latest), None)
        if found is None and (last is None or last.end is not None):
            values = asdict(attribution)
            share: Fraction = values.pop("gpu_share")
            cluster = values.pop("cluster")
            found = UsageInterval.objects.create(
                key=key,
                holder_id=holder_id,
                cluster_id=cluster,
                slot=slot,
                start=max(at, last.end) if last and last.end else at,
                estimated_start=estimated,
                gpu_share_numerator=share.numerator,
                gpu_share_denominator=share.denominator,
                count=quantity,
                source_start=dict(evidence),
                recorded_at=clock.now(),
                **values,
            )
            dirty_hours.mark(cluster, found.start)
    if found is not None:
        return found
    assert last is not None
    raise SlotHeld(slot, last.holder_id)


def close_interval(
    target: UUID | str, at: datetime, evidence: Mapping[str, Any], estimated: bool = False
) -> UsageInterval | None:
    """End the interval with key `target` (a UUID), or the one open on slot `target` (text), at `at`.

    The first end counts: a later call changes nothing. An end before the start becomes the start. Returns the interval
    as it is now (for a free slot its last one), or None if there was none.
    """
    ends = {"key": target} if isinstance(target, UUID) else {"slot": target}
    with transaction.atomic():
        row = UsageInterval.objects.filter(**ends).order_by(F("end").desc(nulls_first=True)).first()
        if row is None:
            return None
        ended = UsageInterval.objects.filter(pk=row.pk, end=None).update(
            end=Greatest(F("start"), at), source_end=dict(evidence), estimated_end=estimated
        )
        row.refresh_from_db()
        if ended and row.end:
            dirty_hours.mark(row.cluster_id, row.end)
    return row
