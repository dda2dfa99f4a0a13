"""Computes what allocations that hold something will have cost when their time is over."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from allocations.requests.cost_forecast import expected_ends
from quotas.costs import rates, selectors
from quotas.costs.selectors import NO_CHARGE, Charge
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class CostAtEnd:
    """When the time of an allocation is over, and what it is charged until then, from its first hold on."""

    ends_at: datetime
    charge: Charge


def costs_at_end(rows: Iterable[UsageInterval], now: datetime) -> dict[UUID, CostAtEnd]:
    """Return the costs of the allocations of which an interval is open, given all their intervals, by the prices that
    are known now; at most three queries. What else uses their GPUs is taken to go on.
    """
    rows = list(rows)
    holding = {row.holder_id for row in rows if row.end is None}
    ends = expected_ends(holding, now) if holding else {}
    if not ends:
        return {}
    held = [_until_its_end(row, ends[row.holder_id]) for row in rows if row.holder_id in ends]
    charges = selectors.charges(held, rates.read(row.flavor for row in held), max(ends.values()))
    return {holder: CostAtEnd(end, charges.get(holder, NO_CHARGE)) for holder, end in ends.items()}


def _until_its_end(row: UsageInterval, end: datetime) -> UsageInterval:
    if row.end is not None:
        return row
    ended = copy(row)
    ended.end = end
    return ended
