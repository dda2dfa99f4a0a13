"""The steps of a window: hours, days, weeks or months, each of which has rows of its own. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby
from typing import TypeVar

from portal.core.errors import Invalid
from quotas.costs import windows
from quotas.costs.calendar import ONE_DAY, UTC_CALENDAR, Calendar, month_of, months_later
from quotas.costs.rating import Window
from quotas.metering.hours import HOUR

MAX_STEPS = 366 * 24
RowT = TypeVar("RowT")


class Step(StrEnum):
    """How long the steps of a window are; `all` is the window as one."""

    ALL = "all"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def edges(window: Window, step: Step, calendar: Calendar = UTC_CALENDAR) -> list[datetime]:
    """Return the bounds of the window and the starts of the steps between them, in order. Raises Invalid if there are
    more than MAX_STEPS.
    """
    if step is not Step.ALL:
        windows.check_years(window)
    if step is Step.HOUR and window.end - window.start > MAX_STEPS * HOUR:
        raise Invalid({"accumulate": [f"Choose a window of at most {MAX_STEPS} hours, or accumulate by day."]})
    inner = {moment for moment in _starts(window, step, calendar) if window.start < moment < window.end}
    return [window.start, *sorted(inner), window.end]


def by_step(edges: Sequence[datetime], rows: Iterable[RowT], start: Callable[[RowT], datetime]) -> Iterator[list[RowT]]:
    """Yield the rows of each step between the edges; some have none. ``start`` returns when the step of a row begins,
    in the order of which they come.
    """
    steps = groupby(rows, key=start)
    found = next(steps, None)
    for edge in edges[:-1]:
        if found is None or found[0] != edge:
            yield []
            continue
        yield list(found[1])
        found = next(steps, None)


def _starts(window: Window, step: Step, calendar: Calendar) -> Iterator[datetime]:
    """Yield the starts of the steps, from that which contains the start of the window."""
    if step is Step.HOUR:
        hour = calendar.hour_of(window.start)
        while hour < window.end:
            yield hour
            hour += HOUR
        return
    if step is Step.ALL:
        return
    day, last = calendar.day_of(window.start), calendar.day_of(window.end)
    day = {Step.WEEK: calendar.week_of(day), Step.MONTH: month_of(day)}.get(step, day)
    while day <= last:
        yield calendar.start_of(day)
        day = _next(day, step)


def _next(day: date, step: Step) -> date:
    return months_later(day, 1) if step is Step.MONTH else day + (7 if step is Step.WEEK else 1) * ONE_DAY
