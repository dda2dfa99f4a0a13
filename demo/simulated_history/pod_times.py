"""When the allocations of a simulated history had pods: some are forgotten, and notebooks rest at night."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

from demo.simulated_history.model import HeldAllocation
from demo.simulated_history.past_intervals import PastPods
from quotas.metering.hours import DAY, day_of

LONG = timedelta(hours=12)
MORNING, EVENING = timedelta(hours=8), timedelta(hours=19)
NEVER_USED, LEFT_EARLY = 0.04, 0.15
"""Shares of the allocations that have no pod at all, and whose work is done long before they end."""


def pod_times(held: HeldAllocation, random: Random) -> Iterator[PastPods]:
    """Yield the times in which an allocation had a pod, in order; they do not overlap."""
    lasts = held.ended_at - held.held_at
    fate = random.random()
    if fate < NEVER_USED:
        return
    start = held.held_at + lasts * random.uniform(0.005, 0.03)
    end = held.held_at + lasts * (random.uniform(0.3, 0.7) if fate < LEFT_EARLY else random.uniform(0.97, 1))
    if held.labels.get("activity") == "notebook" and lasts > LONG:
        yield from _by_day(held, start, end)
    else:
        yield PastPods(held.id, start, end)


def _by_day(held: HeldAllocation, start: datetime, end: datetime) -> Iterator[PastPods]:
    day = day_of(start)
    while day < end:
        first, last = max(start, day + MORNING), min(end, day + EVENING)
        if first < last:
            yield PastPods(held.id, first, last)
        day += DAY
