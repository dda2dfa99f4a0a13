"""Write operations on the usage ledger: open an interval, and close it. Both may be repeated.

Keys are computed from the observation (uuid5), so the same observation recorded twice, by two workers or after a
restore, is one row. If nobody observed an end, the last sighting is recorded with `estimated`: the error is at most the
time between two observations, and always in the holder's favour.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.db.models.expressions import RawSQL

from portal.core import clock
from portal.core.any_of import AnyOf
from portal.core.errors import Retryable
from portal.core.locks import Lock, advisory_locks
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Rows, read_rows, read_tables
from quotas.metering import dirty_hours, intervals
from quotas.metering.models import UsageInterval

LOCKS_AT_ONCE = 50
CLOSE = """
    UPDATE metering_usageinterval AS one
    SET "end" = greatest(start, %s), source_end = gone.evidence, estimated_end = %s
    FROM unnest(%s::uuid[], %s::text[]::jsonb[]) AS gone (key, evidence)
    WHERE one.key = gone.key AND "end" IS NULL
    RETURNING cluster, "end"
"""
_LAST = """
    SELECT last.key FROM unnest(%s::text[]) AS wanted (slot) CROSS JOIN LATERAL (
        SELECT key FROM metering_usageinterval AS one WHERE one.slot = wanted.slot
        ORDER BY "end" DESC NULLS FIRST LIMIT 1
    ) AS last
"""


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


@dataclass(frozen=True)
class Begin:
    """That `holder_id` holds `quantity` slices in `slot` from `at` on, in an interval with this key."""

    key: UUID
    holder_id: UUID
    slot: str
    at: datetime
    attribution: Attribution
    quantity: int
    evidence: Mapping[str, Any]
    estimated: bool = False


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
    """Open one interval, as `open_intervals` does; return it."""
    [row] = open_intervals([Begin(key, holder_id, slot, at, attribution, quantity, evidence, estimated)])
    return row


def open_intervals(begins: Sequence[Begin]) -> list[UsageInterval]:
    """Open these intervals, in their order; return them. A statement takes LOCKS_AT_ONCE locks, and others are as many
    as for one.

    1. An interval with a known key is returned as it is, ended or not.
    2. Raises SlotHeld if another interval is open on a slot; those before it are opened.
    3. A start before the slot's last end is moved to it, so that no second is charged twice.
    """
    held: SlotHeld | None = None
    found: list[UsageInterval] = []
    # Without a savepoint, since SlotHeld, after which a caller goes on, is raised outside of the block.
    with transaction.atomic(savepoint=False), ExitStack() as locks:
        for first in range(0, len(begins), LOCKS_AT_ONCE):
            some = [one.slot for one in begins[first : first + LOCKS_AT_ONCE]]
            locks.enter_context(advisory_locks(*(Lock(("slot", slot)) for slot in some)))
        known, last = _known_and_last(begins)
        new: list[UsageInterval] = []
        for one in begins:
            row, before = known.get(one.key), last.get(one.slot)
            if row is None and before is not None and before.end is None:
                held = SlotHeld(one.slot, before.holder_id)
                break
            if row is None:
                row = known[one.key] = last[one.slot] = interval_of(one, before.end if before else None)
                new.append(row)
            found.append(row)
        UsageInterval.objects.bulk_create(new)
        for cluster in {row.cluster_id for row in new}:
            dirty_hours.mark(cluster, min(row.start for row in new if row.cluster_id == cluster))
    if held is not None:
        raise held
    return found


def _known_and_last(begins: Sequence[Begin]) -> tuple[dict[UUID, UsageInterval], dict[str, UsageInterval]]:
    """Return the intervals with these keys, and the last one of each slot."""
    known, last = read_tables(*_KNOWN_AND_LAST.of(keys=[one.key for one in begins], slots=[one.slot for one in begins]))
    return {row.key: row for row in known}, {row.slot: row for row in last}


_KNOWN_AND_LAST = QueryTemplate(
    lambda keys, slots: [
        Rows(UsageInterval.objects.filter(AnyOf("key", keys)).order_by()),
        Rows(UsageInterval.objects.filter(pk__in=RawSQL(_LAST, (slots,))).order_by()),  # noqa: S611
    ],
    keys=list[UUID],
    slots=list[str],
)


def interval_of(one: Begin, last_end: datetime | None = None) -> UsageInterval:
    """Return the interval that begins, not before the last one in its slot has ended; it is not saved."""
    values = dict(vars(one.attribution))  # asdict would copy each value, which takes as long as the INSERT
    share: Fraction = values.pop("gpu_share")
    cluster = values.pop("cluster")
    return UsageInterval(
        key=one.key,
        holder_id=one.holder_id,
        cluster_id=cluster,
        slot=one.slot,
        start=max(one.at, last_end) if last_end else one.at,
        estimated_start=one.estimated,
        gpu_share_numerator=share.numerator,
        gpu_share_denominator=share.denominator,
        count=one.quantity,
        source_start=dict(one.evidence),
        recorded_at=clock.now(),
        **values,
    )


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
        open_row = UsageInterval.objects.filter(pk=row.pk, end=None)
        ended = intervals.end(open_row, at, estimated=estimated, source_end=dict(evidence))
        row.refresh_from_db()
        if ended and row.end:
            dirty_hours.mark(row.cluster_id, row.end)
    return row


def close_intervals(evidence: Mapping[UUID, Mapping[str, Any]], at: datetime, *, estimated: bool) -> None:
    """End the intervals with these keys at `at`, each with its evidence, as `close_interval` does; one statement, none
    without an interval.
    """
    if not evidence:
        return
    documents = [json.dumps(one) for one in evidence.values()]
    with transaction.atomic(savepoint=False):
        ended = read_rows(CLOSE, [at, estimated, list(evidence), documents])
        for cluster in {row.cluster for row in ended}:
            dirty_hours.mark(cluster, min(row.end for row in ended if row.cluster == cluster))
