"""Processor time by process, while the other team works without the attack and with it."""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Sample:
    """Processor seconds up to ``at``, by the name of a process; those of its children count too. ``idle`` is of all
    processors together.
    """

    at: float
    idle: float
    used: Mapping[str, float]


def sample(pids: Mapping[str, int]) -> Sample:
    """Return the processor time of these processes and of this one, which is the other team's client."""
    used = {name: _used(pid) for name, pid in pids.items()}
    return Sample(time.monotonic(), psutil.cpu_times().idle, {**used, "the other team": _own()})


def line(title: str, before: Sample, after: Sample) -> str:
    """Return how busy all processors were between two samples, and the share of one processor of each process."""
    seconds = after.at - before.at
    busy = 1 - (after.idle - before.idle) / (seconds * (psutil.cpu_count() or 1))
    shares = {name: (used - before.used.get(name, 0.0)) / seconds for name, used in after.used.items()}
    listed = sorted(((share, name) for name, share in shares.items() if share >= 0.005), reverse=True)
    return f"processors busy {title}: {busy:.0%}; of one: " + ", ".join(f"{name} {share:.0%}" for share, name in listed)


def _used(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return sum(sum(each.cpu_times()[:4]) for each in [process, *process.children(recursive=True)])
    return 0.0


def _own() -> float:
    user, system, *_ = os.times()
    return user + system
