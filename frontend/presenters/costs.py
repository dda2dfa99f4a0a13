"""Costs as a table whose rounded amounts add up to its sums."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from frontend.presenters import amounts
from frontend.presenters.costs_chart import Trend
from quotas.costs.cost_rows import CostRow, Costs
from quotas.costs.outages import OutageShare
from quotas.costs.rating import Window

PLACES = 2


@dataclass(frozen=True)
class CostLine:
    """A row as REST has it, and how it is shown; ``share`` is its part of the sum in per cent, for the bar.

    Cost and share are None if it is not priced, or not known yet, as ``missing`` says. ``left_out`` says what the cost
    of a row that is partly priced leaves out. ``change`` is None without a row to compare with, ``idle`` if it is not
    known.
    """

    row: CostRow
    name: str
    url: str
    gpu_hours: Decimal
    cost: Decimal | None
    missing: str
    left_out: str
    share: int | None
    change: Decimal | None
    idle: Decimal | None
    trend: Trend | None


@dataclass(frozen=True)
class CostTable:
    """The lines and their sums. ``total`` is None for the reason ``missing``; ``left_out`` says what it leaves out."""

    start: datetime
    end: datetime
    currency: str
    lines: Sequence[CostLine]
    gpu_hours: Decimal
    total: Decimal | None
    missing: str
    left_out: str
    idle: Decimal | None


def table(found: Costs, names: Mapping[str, str], urls: Mapping[str, str], trends: Mapping[str, Trend]) -> CostTable:
    """Return the table; texts, links and trends are by the name of a row. Rows of other pages of it need none."""
    hours = amounts.rounded([Decimal(row.gpu_hours) for row in found.rows])
    costs = amounts.rounded([Decimal(row.total or 0) for row in found.rows])
    total = sum(costs, Decimal("0.00"))
    lines = [
        CostLine(
            row=row,
            name=names.get(row.name, ""),
            url=urls.get(row.name, ""),
            gpu_hours=used,
            cost=None if row.total is None else cost,
            missing=missing([row]),
            left_out=_left_out(row),
            share=None if row.total is None else round(100 * cost / total) if total > 0 else 0,
            change=_change(row, cost),
            idle=_places(row.idle_cost),
            trend=trends.get(row.name),
        )
        for row, used, cost in zip(found.rows, hours, costs, strict=True)
    ]
    return CostTable(
        start=found.window.start,
        end=found.window.end,
        currency=found.currency,
        lines=lines,
        gpu_hours=sum(hours, Decimal("0.00")),
        total=None if found.total is None else total,
        missing=missing(found.rows),
        left_out=_left_out(found),
        idle=None if (idle := idle_total(found)) is None else round(idle, PLACES),
    )


def idle_total(found: Costs) -> Decimal | None:
    """Return the idle cost of all rows; None if that of any is not known, or capacity was not recorded all the time."""
    costs = [row.idle_cost for row in found.rows]
    recorded = found.capacity_recorded_since.values()
    if None in costs or any(at is None or at > found.window.start for at in recorded):
        return None
    return sum((Decimal(cost or 0) for cost in costs), Decimal(0))


def missing(rows: Sequence[CostRow]) -> str:
    """Return why rows have no total: nothing of them is priced, or their bills and fixed costs are not known yet."""
    return amounts.NOT_PRICED if all(row.cost is None for row in rows) else amounts.NOT_KNOWN_YET


def ordered(found: Costs, names: Mapping[str, str], order: str) -> list[CostRow]:
    """Return the rows in an order of the form; empty: by cost, highest first. Changes are by their size, whether cost
    rose or fell. What is not known is last.
    """
    if order == "name":
        return sorted(found.rows, key=lambda row: names[row.name])
    column = {"": "total", "gpu_hours": "gpu_hours", "idle": "idle_cost", "change": "change"}[order]
    size = abs if order == "change" else Decimal
    known = {row.name: size(Decimal(amount)) for row in found.rows if (amount := getattr(row, column)) is not None}
    return sorted(found.rows, key=lambda row: (row.name not in known, -known.get(row.name, Decimal(0))))


def outage_line(share: OutageShare, currency: str) -> str:
    """Return the gaps in metering, ``1 metering gap, < 1 min``, and what was charged for them; empty without any."""
    if not share.outages:
        return ""
    count, hours = len(share.outages), amounts.number(share.charged.gpu_hours)
    length = amounts.span(_time_in(one.window for one in share.outages))
    gaps = "1 metering gap" if count == 1 else f"{count} metering gaps"
    cost = amounts.money(share.charged.cost, currency)
    clusters = sorted({one.cluster for one in share.outages})
    which = f"Cluster {clusters[0]}" if len(clusters) == 1 else f"At least one of the clusters {', '.join(clusters)}"
    return f"{which}: {gaps}, {length.replace('under', '<')}. {hours} GPU-hours, {cost}, are charged for it."


def billed_line(found: Costs) -> str:
    """Return what part of the money bills cover; empty if none was entered, and for who does not see the fleet."""
    if found.billed_share is None:
        return ""
    return f"Bills cover {round(100 * Decimal(found.billed_share))} % of what GPUs and nodes cost in this period."


def _time_in(windows: Iterable[Window]) -> timedelta:
    """Return how long at least one of the windows lasts."""
    total, until = timedelta(), None
    for one in sorted(windows, key=lambda window: window.start):
        start = one.start if until is None else max(one.start, until)
        if one.end > start:
            total, until = total + (one.end - start), one.end
    return total


def _places(amount: str | None) -> Decimal | None:
    return None if amount is None else round(Decimal(amount), PLACES)


def _change(row: CostRow, cost: Decimal) -> Decimal | None:
    """Return the difference of the amounts as they are shown; None if it is not known."""
    if row.change is None or row.previous is None or row.previous.total is None:
        return None
    return cost - round(Decimal(row.previous.total), PLACES)


def _left_out(costs: Costs | CostRow) -> str:
    """Return what the cost leaves out; empty if nothing, or if it leaves out all."""
    return "" if costs.total is None else amounts.left_out(Fraction(costs.unpriced_gpu_hours))
