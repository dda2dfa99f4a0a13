"""Reads the columns of usage intervals that devices and cost of allocations need; a list has too many for objects."""

from collections.abc import Collection
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

from portal.core.reading import Statement
from quotas.metering import published_uuids
from quotas.metering.models import device_of_slot

COLUMNS = (
    *("holder_id", "slot", "start", "end", "count", "flavor", "cluster", "node", "device_uuid"),
    *("unused", "uncharged", "offering", "gpu_share_numerator", "gpu_share_denominator"),
)
INTERVALS = f"""
    SELECT usage.holder_id, usage.slot, usage.start, usage."end", usage.count, usage.flavor, usage.cluster, usage.node,
           {published_uuids.UUID_COLUMN} AS device_uuid, usage.unused, usage.uncharged, usage.offering,
           usage.gpu_share_numerator, usage.gpu_share_denominator
    FROM metering_usageinterval AS usage {published_uuids.JOIN}
    WHERE usage.holder_id = ANY(%s) ORDER BY usage.slot
"""  # noqa: S608 (built from constants)


class HeldInterval(NamedTuple):
    """A usage interval, with the fields of `UsageInterval` of the same names; `device_uuid` as `published_uuids`."""

    holder_id: UUID
    slot: str
    start: datetime
    end: datetime | None
    gpus: Fraction
    flavor: str
    cluster: str
    node: str
    device_uuid: str
    unused: bool
    uncharged: bool
    offering: str
    gpu_share_numerator: int
    gpu_share_denominator: int

    @property
    def device(self) -> str:
        return device_of_slot(self.slot, self.node)


def statement(holders: Collection[UUID]) -> Statement:
    """Return what to read of the holders' intervals, in the order of their slots."""
    return Statement(INTERVALS, (list(holders),), COLUMNS)


def interval(row: Any) -> HeldInterval:
    """Return the interval in a row that was read by `statement`."""
    values = row._asdict() | {
        "holder_id": UUID(row.holder_id),
        "start": datetime.fromisoformat(row.start),
        "end": datetime.fromisoformat(row.end) if row.end else None,
        "gpus": Fraction(row.gpu_share_numerator * row.count, row.gpu_share_denominator),
    }
    del values["count"]
    return HeldInterval(**values)
