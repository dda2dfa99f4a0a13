"""What the strips of flavors show, as a table: the GPU-hours of each category by day, or by hour of one day."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from frontend.presenters.amounts import number
from frontend.presenters.strips import TITLES, UNKNOWN
from quotas.costs.asset_strips import FlavorStrip
from quotas.costs.calendar import Calendar
from quotas.costs.rating import Window
from quotas.metering.hours import DAY, HOUR
from quotas.metering.parts import MICROSECOND, MICROSECONDS_PER_HOUR, Category

MAX_ROWS = 200
"""So many rows are shown, the first ones."""


@dataclass(frozen=True)
class StepRow:
    """A flavor in a day or an hour; ``hours`` are GPU-hours in the order of ``TITLES``."""

    start: datetime
    flavor: str
    hours: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class StepTable:
    """``word`` is what a step is: day or hour; ``more`` rows are not shown."""

    word: str
    rows: Sequence[StepRow]
    more: int


def table(found: Iterable[FlavorStrip], window: Window, calendar: Calendar) -> StepTable:
    """Return the steps of flavors in order of time, at most MAX_ROWS."""
    is_by_hour = window.end - window.start <= DAY + HOUR  # a day on which clocks change too
    sums: dict[tuple[datetime, str], dict[Category, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    known: dict[str, bool] = {}
    for one in found:
        name = one.key.flavor or "not offered"
        known[name] = one.is_capacity_known and known.get(name, True)
        for part in one.parts:
            start = part.start if is_by_hour else calendar.start_of(calendar.day_of(part.start))
            hours = Fraction((part.end - part.start) // MICROSECOND, MICROSECONDS_PER_HOUR)
            sums[max(start, window.start), name][part.category] += part.gpus * hours
    rows = [StepRow(start, name, _hours(of, is_known=known[name])) for (start, name), of in sorted(sums.items())]
    return StepTable("hour" if is_by_hour else "day", rows[:MAX_ROWS], max(0, len(rows) - MAX_ROWS))


def _hours(sums: Mapping[Category, Fraction], *, is_known: bool) -> list[tuple[str, str]]:
    return [
        (
            title,
            number(sums.get(category, Fraction(0))) if is_known or category is Category.HELD else UNKNOWN,
        )
        for category, title in TITLES.items()
    ]
