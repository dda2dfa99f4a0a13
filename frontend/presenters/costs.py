"""Costs as a table whose rounded amounts add up to its sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from portal.core.money import split
from quotas.costs.selectors import Costs

PLACES = 2


@dataclass(frozen=True)
class CostLine:
    """One row; ``share`` is its part of the sum in per cent, for the bar."""

    name: str
    url: str
    gpu_hours: Decimal
    cost: Decimal
    share: int


@dataclass(frozen=True)
class CostTable:
    start: datetime
    end: datetime
    currency: str
    lines: Sequence[CostLine]
    gpu_hours: Decimal
    total: Decimal


def table(found: Costs, names: Mapping[str, tuple[str, str]]) -> CostTable:
    """Return the table; ``names`` maps a row's name to (text, link) where there is a better text."""
    hours = _rounded([Decimal(row.gpu_hours) for row in found.rows])
    costs = _rounded([Decimal(row.total) for row in found.rows])
    total = sum(costs, Decimal("0.00"))
    lines = []
    for row, used, cost in zip(found.rows, hours, costs, strict=True):
        name, url = names.get(row.name, (row.name, ""))
        lines.append(CostLine(name, url, used, cost, round(100 * cost / total) if total else 0))
    return CostTable(
        start=found.window.start,
        end=found.window.end,
        currency=found.currency,
        lines=lines,
        gpu_hours=sum(hours, Decimal("0.00")),
        total=total,
    )


def _rounded(amounts: Sequence[Decimal]) -> list[Decimal]:
    total = sum(amounts, Decimal(0))
    return split(total, amounts, PLACES) if total else [Decimal("0.00")] * len(amounts)
