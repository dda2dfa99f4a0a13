"""Activities that are repeated while their times are measured."""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from django.db import connection

Record = Callable[[str, float], None]
"""Stores a value under the name of the measure."""


@dataclass(frozen=True)
class Activity:
    """An activity, repeated after a pause of ``pause_s`` each time."""

    once: Callable[[Record], None]
    pause_s: float = 0.0


@dataclass(frozen=True)
class Measured:
    """``series``: values by name. ``problems``: exceptions of the activities, as text."""

    series: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)

    def record(self, name: str, value: float) -> None:
        self.series[name].append(value)


def measured(activities: Sequence[Activity], is_over: Callable[[], bool]) -> Measured:
    """Return what the activities recorded, run concurrently until the stop condition. One that raises is tried
    again.
    """
    found, stop = Measured(), threading.Event()

    def repeat(activity: Activity) -> None:
        try:
            while not (stop.wait(activity.pause_s) or is_over()):
                try:
                    activity.once(found.record)
                except Exception as error:
                    found.problems.append(repr(error))
                    stop.wait(1.0)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(activities)) as threads:
        ends = [threads.submit(repeat, activity) for activity in activities]
    for end in ends:
        end.result()
    return found
