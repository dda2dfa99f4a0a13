"""The axis of time of strips: hours or days of the reader's calendar. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from quotas.costs.calendar import ONE_DAY, Calendar
from quotas.costs.rating import Window
from quotas.metering.hours import HOUR

WIDTH = 600
"""Units of a strip from left to right."""
MAX_TICKS = 7
HOURS = (1, 2, 3, 4, 6, 12)
DAYS = (1, 2, 7, 14, 28)
"""After so many hours of a day, or days from the first one, there is a tick: the least that makes few enough."""
LAST = 88
"""A tick further right, in per cent, has no label, since it is written right of its tick."""


@dataclass(frozen=True)
class Tick:
    """A moment with its label, "" where it has no room; ``x`` is in per cent of a strip, ``left`` in its units."""

    x: float
    left: int
    label: str


def ticks(window: Window, calendar: Calendar) -> list[Tick]:
    """Return the ticks of a window: at full hours (``06:00``) of a few days, else at the starts of days (``2 Nov``)."""
    length = window.end - window.start
    for hours in HOURS:
        if length <= MAX_TICKS * hours * HOUR:
            return [_tick(at, window, _hour(at, calendar)) for at in _hours(window, calendar, hours)]
    step = next((days for days in DAYS if length <= MAX_TICKS * days * ONE_DAY), DAYS[-1])
    return [_tick(at, window, _day(at, calendar)) for at in _days(window, calendar, step)]


def _hours(window: Window, calendar: Calendar, step: int) -> Iterator[datetime]:
    at = calendar.hour_of(window.start)
    while at < window.end:
        if at >= window.start and at.astimezone(calendar.zone).hour % step == 0:
            yield at
        at += HOUR


def _days(window: Window, calendar: Calendar, step: int) -> Iterator[datetime]:
    day = calendar.day_of(window.start)
    if calendar.start_of(day) < window.start:
        day += ONE_DAY
    while (at := calendar.start_of(day)) < window.end:
        yield at
        day += timedelta(days=step)


def _hour(at: datetime, calendar: Calendar) -> str:
    local = at.astimezone(calendar.zone)
    return f"{local:%H:%M}" if local.hour else _day(at, calendar)


def _day(at: datetime, calendar: Calendar) -> str:
    local = at.astimezone(calendar.zone)
    return f"{local.day} {local:%b}"


def _tick(at: datetime, window: Window, label: str) -> Tick:
    part = (at - window.start) / (window.end - window.start)
    x = round(100 * part, 2)
    return Tick(x, round(WIDTH * part), label if x <= LAST else "")
