"""Computes what was held while no pod used it. Pure.

An allocation is unused while it has no pod on a node, and what a Job has reserved until pods of the Job use it. Each
piece of it has the price that was in force, as what is charged (`rating`), so used and unused add up to that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise

from quotas.costs import rating, steps
from quotas.costs.calendar import Calendar
from quotas.costs.rating import ListPrices, RatedUsage, Rates, Usage, Window
from quotas.costs.steps import Step

PodTime = tuple[datetime, datetime | None]
"""The time `[start, end)` in which there was a pod; `end` is None while there is one."""


@dataclass(frozen=True)
class Held:
    """Something held, and when it had pods, in order of their starts; `recorded_since` is since when that is known,
    None if it is not.
    """

    usage: Usage
    pods: Sequence[PodTime]
    recorded_since: datetime | None


@dataclass(frozen=True)
class Unused:
    """What was held while no pod used it, in all and on each day on which something was held; None where that was not
    recorded.
    """

    whole: RatedUsage | None
    by_day: Mapping[date, RatedUsage | None]


def unused(pieces: Iterable[Held], rates: Rates, lists: ListPrices, calendar: Calendar, now: datetime) -> Unused:
    """Return what of the pieces was unused until `now`, by the days of the calendar."""
    sums: dict[date, RatedUsage] = {}
    unknown: set[date] = set()
    for piece in pieces:
        usage, end = piece.usage, min(piece.usage.end or now, now)
        if usage.start >= end:
            continue
        time = Window(usage.start, end)
        for part in _by_day(time, calendar):
            sums.setdefault(calendar.day_of(part.start), RatedUsage())
            if piece.recorded_since is None or part.start < piece.recorded_since:
                unknown.add(calendar.day_of(part.start))
        for gap in without_pods(piece.pods, time):
            for part in _by_day(gap, calendar):
                held = replace(usage, start=part.start, end=part.end)
                sums[calendar.day_of(part.start)] += rating.rated_usage([held], rates, None, now, lists)
    whole = None if unknown else sum(sums.values(), RatedUsage())
    return Unused(whole, {day: None if day in unknown else sums[day] for day in sorted(sums)})


def without_pods(pods: Iterable[PodTime], time: Window) -> Iterator[Window]:
    """Yield the parts of the time in which there was no pod, in order; so are the pods."""
    at = time.start
    for start, end in pods:
        if at < min(start, time.end):
            yield Window(at, min(start, time.end))
        at = max(at, end or time.end)
    if at < time.end:
        yield Window(at, time.end)


def _by_day(time: Window, calendar: Calendar) -> Iterator[Window]:
    for start, end in pairwise(steps.edges(time, Step.DAY, calendar)):
        yield Window(start, end)
