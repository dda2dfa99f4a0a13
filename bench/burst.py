"""Figures of many requests: rates, how evenly teams were served, writes, and latencies. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.statistics import percentile

OWN_OBJECTS, GUARD, STATUS_STEPS = ("workloads", "resourcequotas"), "gpuprojects", 1
"""The objects of an allocation by device plugin, and the writes of its lease's status (PodsReady). The GpuProject is
the project's, and is written for one or for several allocations at a time.
"""


@dataclass
class Burst:
    """The times at which requests were accepted, and slices held, by team; in seconds after the first request."""

    accepted: list[float] = field(default_factory=list)
    held: dict[str, list[float]] = field(default_factory=dict)

    @property
    def all_held(self) -> list[float]:
        return sorted(at for times in self.held.values() for at in times)

    def document(self) -> dict[str, Any]:
        held = self.all_held
        return {
            "requests": len(self.accepted),
            "held": len(held),
            "accepted_per_s": _rate(self.accepted),
            "held_per_s": _rate(held),
            "p50_s": round(median(held), 3) if held else None,
            "p95_s": round(percentile(held, 0.95), 3) if held else None,
        }


def compared(portal: dict[str, Any], first: Burst, second: Burst) -> dict[str, Any]:
    """Return the portal's figures with those of the bare client; rates are compared with the mean of its two runs."""
    bare = [one.document() for one in (first, second)]
    rates = {name: sum(one[name] for one in bare) / 2 for name in ("accepted_per_s", "held_per_s")}
    ratios = {name.removesuffix("_per_s"): round(portal[name] / rate, 2) for name, rate in rates.items()}
    return {
        "portal": portal,
        "bare": bare,
        "ratio": ratios,
        "bare_by_itself": round(bare[1]["held_per_s"] / bare[0]["held_per_s"], 2),
    }


def fairness(held: Mapping[str, Sequence[float]], each: int) -> dict[str, Any]:
    """Return how evenly the teams were served: what the team with the least and the one with the most held when half of
    all was held, and when the first and the last team had everything.
    """
    times = sorted(at for times in held.values() for at in times)
    half = times[len(times) // 2]
    at_half = [sum(at <= half for at in times) for times in held.values()]
    ends = [max(times) for times in held.values() if times]
    return {
        "each": each,
        "least_at_half": min(at_half),
        "most_at_half": max(at_half),
        "first_team_done_s": round(min(ends), 2),
        "last_team_done_s": round(max(ends), 2),
    }


def writes(requests: int, own: int, applied: Mapping[str, int], projects: int) -> dict[str, Any]:
    """Return the portal's writes at the API server, and whether they are exactly one for each object and status step.

    The GpuProject of a project may be written once for each of its allocations, and at least once.
    """
    steps = own - sum(applied.values())
    guards = applied.get(GUARD, 0)
    objects = {name: applied.get(name, 0) for name in OWN_OBJECTS}
    is_exact = steps == STATUS_STEPS * requests and projects <= guards <= requests
    return {
        "all": own,
        "per_request": round(own / requests, 2),
        **objects,
        GUARD: guards,
        "status": steps,
        "is_exact": is_exact and all(number == requests for number in objects.values()),
    }


def _rate(times: Sequence[float]) -> float:
    return round(len(times) / max(times), 1) if times else 0.0


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    return {
        "requests": len(seconds),
        "p50_s": round(median(seconds), 4),
        "p95_s": round(percentile(seconds, 0.95), 4),
        "worst_s": round(max(seconds), 4),
    }


def added(portal: Sequence[float], first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    """Return both sides' latencies, what the portal adds to the median and the p95 of the bare client, and by how much
    the two halves of the bare client differ.
    """
    ours, bare = latencies(portal), latencies([*first, *second])
    halves = [latencies(half) for half in (first, second)]
    return {
        "portal": ours,
        "bare": bare,
        "added_p50_s": round(ours["p50_s"] - bare["p50_s"], 4),
        "added_p95_s": round(ours["p95_s"] - bare["p95_s"], 4),
        "bare_halves_p95_s": [half["p95_s"] for half in halves],
    }
