"""Costs over time: series for a stacked chart and its table, and a line for each row of a table."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from quotas.costs import steps
from quotas.costs.calendar import Calendar
from quotas.costs.cost_rows import CostRow
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering.hours import DAY

MAX_SERIES = 7
"""As many as colours that a colour-blind reader tells apart; what is left is one series more."""
MAX_STEPS = 400
OTHERS = "__others__"
"""The name of rows that are the sum of those that are not read one by one."""
WIDTH, HEIGHT = 120, 24
ZERO = Decimal(0)
FORMATS = {Step.HOUR: "%m-%d %H:%M", Step.DAY: "%Y-%m-%d", Step.WEEK: "week of %Y-%m-%d", Step.MONTH: "%Y-%m"}


@dataclass(frozen=True)
class ChartStep:
    """The amounts of a step, one for each series, and their sum."""

    label: str
    start: datetime
    amounts: Sequence[Decimal]
    total: Decimal


@dataclass(frozen=True)
class Series:
    """``look`` names its colour: a number from 1, ``other`` or ``idle``."""

    name: str
    look: str


@dataclass(frozen=True)
class Chart:
    """Series from the largest, and steps from the oldest."""

    step: str
    unit: str
    series: Sequence[Series]
    steps: Sequence[ChartStep]

    @property
    def summary(self) -> str:
        """Return what the chart shows, for who does not see it."""
        most = max(self.steps, key=lambda one: one.total)
        names = ", ".join(one.name for one in self.series)
        return f"Stacked bars of {self.unit} for each {self.step}: {names}. Most: {most.total:,.2f}, {most.label}."


@dataclass(frozen=True)
class Trend:
    """A line through the amounts of a row, as points in a box of WIDTH by HEIGHT, and the same in words."""

    points: str
    words: str


def step_for(window: Window) -> Step:
    """Return the step of a chart that shows at most a hundred bars."""
    length = window.end - window.start
    if length <= 2 * DAY:
        return Step.HOUR
    if length <= 100 * DAY:
        return Step.DAY
    return Step.WEEK if length <= 2 * 366 * DAY else Step.MONTH


def chart(
    rows: Sequence[CostRow],
    ranked: Sequence[str],
    names: Mapping[str, str],
    window: Window,
    step: Step,
    calendar: Calendar,
    unit: str,
    now: datetime,
    more: int = 0,
) -> Chart | None:
    """Return the chart of rows with steps, whose names are ranked; None if there is but one step, or nothing. ``more``
    is how many others the rows of OTHERS are the sum of.
    """
    starts = step_starts(window, step, calendar, now)
    costly = {row.name for row in rows if Decimal(row.total or 0)}
    shown = [name for name in ranked if name in costly]
    others = max(0, len(shown) + more - MAX_SERIES)
    kept = shown[: MAX_SERIES if others != 1 else MAX_SERIES + 1]
    has_others, has_idle = len(kept) < len(shown) + more, any(Decimal(row.idle_cost or 0) for row in rows)
    if len(starts) < 2 or not (kept or has_idle):
        return None
    series = [Series(names[name], str(number)) for number, name in enumerate(kept, 1)]
    series += [Series(f"{others} others", "other")] * has_others + [Series("Idle", "idle")] * has_idle
    by_step = defaultdict[datetime, list[CostRow]](list)
    for row in rows:
        by_step[row.window.start].append(row)
    found = []
    for start in starts:
        totals = {row.name: Decimal(row.total or 0) for row in by_step[start]}
        amounts = [totals.pop(name, ZERO) for name in kept]
        amounts += [sum(totals.values(), ZERO)] * has_others
        amounts += [sum((Decimal(row.idle_cost or 0) for row in by_step[start]), ZERO)] * has_idle
        label = start.astimezone(calendar.zone).strftime(FORMATS[step])
        found.append(ChartStep(label, start, amounts, sum(amounts, ZERO)))
    return Chart(step.value, unit, series, found)


def step_starts(window: Window, step: Step, calendar: Calendar, now: datetime) -> list[datetime]:
    """Return the starts of the steps that have begun."""
    return [start for start in steps.edges(window, step, calendar)[:-1] if start < now]


def with_others(rows: Iterable[CostRow], whole: Sequence[CostRow]) -> list[CostRow]:
    """Return rows with steps, and for each step of ``whole``, which is all in one row, what they leave of it."""
    found, sums = list(rows), defaultdict[datetime, Decimal](Decimal)
    for row in found:
        sums[row.window.start] += Decimal(row.total or 0)
    return found + [
        replace(row, name=OTHERS, total=None if row.total is None else str(Decimal(row.total) - sums[row.window.start]))
        for row in whole
    ]


def trends(rows: Iterable[CostRow], starts: Sequence[datetime]) -> dict[str, Trend]:
    """Return a line for each name that cost something; none if there is but one step."""
    if len(starts) < 2:
        return {}
    amounts: dict[str, dict[datetime, Decimal]] = defaultdict(dict)
    for row in rows:
        amounts[row.name][row.window.start] = Decimal(row.total or 0)
    return {name: _trend([of.get(start, ZERO) for start in starts]) for name, of in amounts.items() if any(of.values())}


def _trend(amounts: Sequence[Decimal]) -> Trend:
    low, high = min(ZERO, *amounts), max(ZERO, *amounts)
    span, width = high - low or Decimal(1), Decimal(WIDTH) / (len(amounts) - 1)
    points = (
        f"{round(place * width)},{round((high - amount) / span * (HEIGHT - 2)) + 1}"
        for place, amount in enumerate(amounts)
    )
    words = [f"{amount:,.2f}" for amount in (min(amounts), max(amounts), amounts[-1])]
    is_even = len(set(words)) == 1
    return Trend(" ".join(points), f"{words[0]} all the time" if is_even else "from {} to {}, last {}".format(*words))
