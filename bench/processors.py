"""Processor time by process, and what it says about the limit of a rate."""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from deploy.local.runner import Local

CLIENT = "bench"
NEARLY_ALL = 0.9
"""The share of all processors' time from which on they are what bounds a rate."""


@dataclass(frozen=True)
class Sample:
    """Processor seconds up to ``at`` by process, its children included; ``idle`` is of all processors together."""

    at: float
    idle: float
    used: Mapping[str, float]


@dataclass(frozen=True)
class Use:
    """Processor seconds between two samples by process, and the busy share of all processors, other work included."""

    busy: float
    seconds: Mapping[str, float]

    def per(self, number: int) -> dict[str, float]:
        """Return milliseconds for each of so many, by process, the highest first; what takes less than 0.1 is left
        out.
        """
        listed = sorted(((1000 * used / max(1, number), name) for name, used in self.seconds.items()), reverse=True)
        return {name: round(ms, 1) for ms, name in listed if ms >= 0.1}

    def of(self, *names: str) -> float:
        return sum(self.seconds.get(name, 0.0) for name in names)


def sample(local: Local) -> Sample:
    """Return the processor time of all processes of the local cluster and of this one."""
    used = {name: _used(pid) for name, pid in local.pids().items()}
    user, system, *_ = os.times()
    return Sample(time.monotonic(), psutil.cpu_times().idle, {**used, CLIENT: user + system})


def between(before: Sample, after: Sample) -> Use:
    """Return the use between two samples."""
    busy = 1 - (after.idle - before.idle) / ((after.at - before.at) * (psutil.cpu_count() or 1))
    return Use(
        round(min(1.0, max(0.0, busy)), 3),
        {name: max(0.0, used - before.used.get(name, 0.0)) for name, used in after.used.items()},
    )


def bound(use: Use, stages: Mapping[str, float]) -> str:
    """Return what bounds a rate: the process that takes most of busy processors, else the longest stage (seconds)."""
    if use.busy >= NEARLY_ALL:
        name = max(use.seconds, key=lambda name: use.seconds[name])
        return f"the processors, of which {name} takes most"
    return f"the wait {max(stages, key=lambda name: stages[name])}"


def _used(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return sum(sum(each.cpu_times()[:4]) for each in [process, *process.children(recursive=True)])
    return 0.0
