"""Reads what some intervals of the ledger are charged: of a physical GPU, beside its other uses."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from portal.core.reading import Statement, read_tables
from quotas.catalog.layouts import parent_gpu
from quotas.metering import gpu_shares
from quotas.metering.held_intervals import HeldInterval
from quotas.metering.models import UsageInterval, device_of_slot
from quotas.metering.parts import UsageSpan

_BESIDE_COLUMNS = ("cluster", "flavor", "node", "slot", "key", "start", "end", "numerator", "denominator", "count")
_BESIDE = """
    SELECT cluster, flavor, node, slot, key, start, "end", gpu_share_numerator, gpu_share_denominator, count
    FROM metering_usageinterval WHERE key IN (
        SELECT other.key
        FROM metering_usageinterval AS one JOIN metering_usageinterval AS other
            ON (other.cluster, other.flavor, other.node) = (one.cluster, one.flavor, one.node)
            AND (one."end" IS NULL OR other.start < one."end") AND (other."end" IS NULL OR other."end" > one.start)
        WHERE one.holder_id = ANY(%s) AND one.slot = ANY(%s)
              AND other.node <> '' AND split_part(other.slot, '/', 2) = other.node
              AND split_part(split_part(other.slot, '/', 3), '-mig-', 1)
                  = split_part(split_part(one.slot, '/', 3), '-mig-', 1)
    )
"""


Row = TypeVar("Row", bound=UsageInterval | HeldInterval)


class Charged(NamedTuple, Generic[Row]):
    """The ``gpus`` that an interval is charged in ``[start, end)``; None is no end yet."""

    row: Row
    start: datetime
    end: datetime | None
    gpus: Fraction


class Gpu(NamedTuple):
    cluster: str
    flavor: str
    node: str
    name: str


def until(rows: Iterable[Row], now: datetime) -> Iterator[Charged[Row]]:
    """Yield what the intervals are charged until ``now``, or their ends if these are before it, each piece with its
    GPUs; one query if any has a device.
    """
    on_gpu: dict[tuple[str, datetime], Row] = {}
    for row in rows:
        if not row.device:
            yield Charged(row, row.start, row.end, row.gpus)
        elif row.end is None or row.end > row.start:
            on_gpu[row.slot, row.start] = row
    for uses in _beside(on_gpu.values()).values():
        for share in gpu_shares.of_gpu(uses, min(use.start for use in uses), now):
            own = on_gpu.get((share.use.slot, share.use.start))
            if own and (own.end is None or share.start < own.end):
                yield Charged(own, share.start, min(share.end, own.end or now), share.gpus)


def _beside(rows: Collection[UsageInterval | HeldInterval]) -> dict[Gpu, list[UsageSpan]]:
    """Return the uses of the GPUs of these intervals while they last, with their own."""
    found: dict[Gpu, list[UsageSpan]] = defaultdict(list)
    if not rows:
        return found
    values = (list({row.holder_id for row in rows}), [row.slot for row in rows])
    [beside] = read_tables(Statement(_BESIDE, values, _BESIDE_COLUMNS))
    for row in beside:
        device, gpus = device_of_slot(row.slot, row.node), Fraction(row.numerator * row.count, row.denominator)
        start, end = datetime.fromisoformat(row.start), datetime.fromisoformat(row.end) if row.end else None
        use = UsageSpan(row.key, start, end, gpus, device=device, slot=row.slot)
        found[Gpu(row.cluster, row.flavor, row.node, parent_gpu(device))].append(use)
    return found
