"""What a month cost and is forecast to cost, what runs now, and the cost of one holder by day."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from django.utils.formats import date_format

from allocations.requests.cost_forecast import CostForecast
from allocations.requests.costs_at_end import CostAtEnd
from frontend.presenters import amounts
from frontend.presenters.allocations import Card
from quotas.costs.calendar import Calendar
from quotas.costs.cost_rows import CostRow, Costs
from quotas.costs.filters import UNALLOCATED
from quotas.costs.holder_costs import HolderCosts, UnusedAmount

PLACES = 2
MAX_LINES = 20
MAX_RUNNING = 100
NOTHING = (None, "0", "0.0000")
NOT_KNOWN = "without bills and fixed costs, which are not known yet"
NOT_RECORDED = "not recorded"
UNKNOWN = {"member": "Jobs submitted with kubectl", "offering": "No offering"}
BAR, GAP, HEIGHT = 10, 2, 60
"""The width of a bar of a day with the gap beside it, the gap, and the height of the highest bar."""


@dataclass(frozen=True)
class MonthCost:
    """The present month. ``forecast`` is empty if it is ``unknown``, which then says why; the others may be empty."""

    name: str
    start: datetime
    so_far: str
    left_out: str
    fixed: str
    forecast: str
    span: str
    unknown: str
    is_complete: bool


@dataclass(frozen=True)
class CostLine:
    """One row; ``share`` is its part of the sum in per cent. ``cost`` is ``not priced`` if it has no price.

    ``url`` leads to what the row is made of; empty if no filter can name it.
    """

    name: str
    gpu_hours: str
    cost: str
    left_out: str
    share: int | None
    url: str = ""


@dataclass(frozen=True)
class CostLines:
    """The rows with the highest cost, the sum of those that are not shown, and the sum of all."""

    key: str
    lines: Sequence[CostLine]
    others: int
    of_others: CostLine | None
    whole: CostLine


@dataclass(frozen=True)
class RunningCost:
    """An allocation that holds something. ``at_end`` is what it will have cost at ``ends_at``."""

    card: Card
    ends_at: datetime
    at_end: str


@dataclass(frozen=True)
class Running:
    """What holds something now, of which ``rows`` are the newest, and the sums of all of it."""

    rows: Sequence[RunningCost]
    count: int
    per_hour: str
    at_end: str


@dataclass(frozen=True)
class UnusedLine:
    """What no pod used: ``not recorded`` if that is not known, a cost of ``not priced`` if it has no price."""

    gpu_hours: str
    cost: str


@dataclass(frozen=True)
class Bar:
    """The bar of a day, in units of the drawing."""

    x: int
    y: int
    width: int
    height: int
    title: str


@dataclass(frozen=True)
class DayCosts:
    """The days on which something was held, oldest first: (day, line, what no pod used). ``bars`` are None if nothing
    has a price. ``unused`` is what no pod used on all of these days.

    ``has_month_charges`` is whether bills or fixed costs are in the amounts.
    """

    days: Sequence[tuple[str, CostLine, UnusedLine]]
    whole: CostLine
    unused: UnusedLine
    bars: Sequence[Bar] | None
    width: int
    summary: str
    has_month_charges: bool


def month_cost(costs: Costs, forecast: CostForecast, calendar: Calendar) -> MonthCost:
    """Return the month of a forecast, in which ``costs`` are all in one row."""
    found, unit = forecast.amounts, forecast.currency
    shared = costs.rows[0].shared_cost if costs.rows else "0"
    total = _amount(costs.rows[0]) if costs.rows else costs.total
    range_ = ""
    if found.low is not None and found.total is not None and found.high is not None:
        range_ = amounts.forecast_range(found.low, found.total, found.high, unit)
    return MonthCost(
        name=date_format(calendar.day_of(forecast.window.start), "F Y"),
        start=forecast.window.start,
        so_far=_money(total, unit),
        left_out=_left_out(costs.rows[0]) if costs.rows else "",
        fixed="" if shared is None or shared in NOTHING else _money(shared, unit),
        forecast=_money(found.total, unit) if found.total else "",
        span=range_,
        unknown=f"{forecast.unknown.capitalize()}." if forecast.unknown else "",
        is_complete=forecast.is_complete,
    )


def cost_lines(key: str, costs: Costs, url_of: Callable[[str], str]) -> CostLines:
    """Return the rows of costs by one key; the rounded amounts add up to the sum. ``url_of`` returns what leads to the
    parts of a row.
    """
    lines = _lines(costs, [UNKNOWN.get(key, row.name) if row.name == UNALLOCATED else row.name for row in costs.rows])
    lines = [replace(line, url=url_of(row.name)) for line, row in zip(lines, costs.rows, strict=True)]
    rest = costs.rows[MAX_LINES:]
    hidden = _sum(costs, rest, f"{len(rest)} more") if rest else None
    return CostLines(key, lines[:MAX_LINES], len(rest), hidden, _sum(costs, costs.rows, "Total"))


def running(cards: Sequence[Card], at_end: Mapping[UUID, CostAtEnd]) -> Running:
    """Return what holds something now, given all cards of the person's allocations."""
    held = [(card, at_end[card.row.pk]) for card in cards if card.row.pk in at_end]
    unit = held[0][0].detail.currency if held else ""
    per_hour = [card.detail.per_hour for card, _ in held]
    priced = sum((amount for amount in per_hour if amount is not None), Fraction(0))
    costs = [one.charge.cost for _, one in held]
    sum_at_end = None if set(costs) == {None} else sum((cost or Fraction(0) for cost in costs), Fraction(0))
    unpriced = per_hour.count(None)
    return Running(
        rows=[RunningCost(card, one.ends_at, amounts.cost(one.charge, unit)) for card, one in held[:MAX_RUNNING]],
        count=len(held),
        per_hour=amounts.held_per_hour(None if held and unpriced == len(held) else priced, unit, unpriced),
        at_end=amounts.money(sum_at_end, unit),
    )


def day_costs(costs: Costs, calendar: Calendar, unused: Mapping[date, UnusedAmount | None]) -> DayCosts:
    """Return the costs of one holder by day, drawn and as lines."""
    days = [calendar.day_of(row.window.start) for row in costs.rows]
    names = [f"{day:%Y-%m-%d}" for day in days]
    lines = _lines(costs, names)
    *unused_lines, whole_unused = _unused_lines([unused.get(day) for day in days])
    highest = max((Decimal(_amount(row) or 0) for row in costs.rows), default=Decimal(0))
    bars = [
        _bar(place, Decimal(_amount(row) or 0) / highest, f"{name}: {line.cost} {costs.currency}")
        for place, (row, name, line) in enumerate(zip(costs.rows, names, lines, strict=True))
        if highest > 0
    ]
    return DayCosts(
        days=list(zip(names, lines, unused_lines, strict=True)),
        whole=_sum(costs, costs.rows, "Total"),
        unused=whole_unused,
        bars=bars or None,
        width=max(1, len(bars)) * BAR,
        summary=", ".join(bar.title for bar in bars),
        has_month_charges=any({row.adjustment, row.shared_cost} - set(NOTHING) for row in costs.rows),
    )


def unused(found: HolderCosts) -> tuple[str, str] | None:
    """Return the GPU-hours that no pod used, and what they cost; None if pods used all, or if that is not recorded."""
    if found.unused is None or not found.unused.gpu_hours:
        return None
    cost = found.unused.cost
    return amounts.number(Fraction(found.unused.gpu_hours)), _money(None if cost is None else str(cost), found.currency)


def _unused_lines(parts: Sequence[UnusedAmount | None]) -> list[UnusedLine]:
    """Return a line for each part and one for their sum: amounts are rounded so that they add up."""
    known = [one for one in parts if one is not None]
    hours = amounts.rounded([one.gpu_hours for one in known])
    costs = amounts.rounded([one.cost or Decimal(0) for one in known])
    found = iter([_unused_line(*line) for line in zip(known, hours, costs, strict=True)])
    lines = [UnusedLine(NOT_RECORDED, NOT_RECORDED) if one is None else next(found) for one in parts]
    if len(known) < len(parts):
        return [*lines, UnusedLine(NOT_RECORDED, NOT_RECORDED)]
    is_priced = any(one.cost is not None for one in known)
    whole = amounts.number(sum(costs, Decimal(0))) if is_priced else amounts.NOT_PRICED
    return [*lines, UnusedLine(amounts.number(sum(hours, Decimal(0))), whole)]


def _unused_line(one: UnusedAmount, hours: Decimal, cost: Decimal) -> UnusedLine:
    return UnusedLine(amounts.number(hours), amounts.NOT_PRICED if one.cost is None else amounts.number(cost))


def _lines(costs: Costs, names: Sequence[str]) -> list[CostLine]:
    """Return a line for each row: amounts are rounded so that they add up."""
    hours = amounts.rounded([Decimal(row.gpu_hours) for row in costs.rows])
    totals = amounts.rounded([Decimal(_amount(row) or 0) for row in costs.rows])
    whole = sum(totals, Decimal(0))
    return [
        CostLine(
            name=name,
            gpu_hours=amounts.number(used),
            cost=amounts.NOT_PRICED if _amount(row) is None else amounts.number(cost),
            left_out=_left_out(row),
            share=None if _amount(row) is None else round(100 * cost / whole) if whole else 0,
        )
        for name, row, used, cost in zip(names, costs.rows, hours, totals, strict=True)
    ]


def _sum(costs: Costs, rows: Sequence[CostRow], name: str) -> CostLine:
    """Return the sum of some rows, of which the others are shown, or of all."""
    shown = len(costs.rows) - len(rows)
    hours = amounts.rounded([Decimal(row.gpu_hours) for row in costs.rows])[shown:]
    totals = amounts.rounded([Decimal(_amount(row) or 0) for row in costs.rows])[shown:]
    is_priced = any(_amount(row) is not None for row in rows) or not rows
    unpriced = sum((Fraction(row.unpriced_gpu_hours) for row in rows), Fraction(0))
    return CostLine(
        name=name,
        gpu_hours=amounts.number(sum(hours, Decimal(0))),
        cost=amounts.number(sum(totals, Decimal(0))) if is_priced else amounts.NOT_PRICED,
        left_out=amounts.left_out(unpriced) if is_priced else "",
        share=None,
    )


def _bar(place: int, part: Decimal, title: str) -> Bar:
    height = max(0, round(HEIGHT * part))
    return Bar(x=place * BAR + GAP // 2, y=HEIGHT - height, width=BAR - GAP, height=height, title=title)


def _amount(row: CostRow) -> str | None:
    """Return what a row is charged: without bills and fixed costs while those of the month are not known."""
    return row.cost if row.total is None else row.total


def _left_out(row: CostRow) -> str:
    """Return what the amount of a row leaves out; empty if nothing, or if it leaves out all."""
    if row.cost is None:
        return ""
    unpriced = amounts.left_out(Fraction(row.unpriced_gpu_hours))
    return ", ".join(filter(None, [unpriced, NOT_KNOWN if row.total is None else ""]))


def _money(amount: str | None, currency: str) -> str:
    return amounts.money(None if amount is None else Fraction(amount), currency)


def _text(amount: str) -> str:
    return f"{round(Decimal(amount), PLACES):,}"
