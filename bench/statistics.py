"""Medians, percentiles and the bootstrap interval of a ratio of medians. Pure."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

RESAMPLES = 4000


@dataclass(frozen=True)
class Comparison:
    """Two series of seconds; ``ratio`` is the first median divided by the second, with its 95 % interval."""

    rounds: int
    p50_s: float
    p95_s: float
    beside_p50_s: float
    beside_p95_s: float
    ratio: float
    low: float
    high: float

    def document(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]


def compare(ours: Sequence[float], beside: Sequence[float], seed: int = 1) -> Comparison:
    """Compare two series by percentile bootstrap (Efron 1979), resampling both; deterministic."""
    chance = random.Random(seed)
    ratios = sorted(
        median(chance.choices(ours, k=len(ours))) / median(chance.choices(beside, k=len(beside)))
        for _ in range(RESAMPLES)
    )
    return Comparison(
        rounds=len(ours),
        p50_s=median(ours),
        p95_s=percentile(ours, 0.95),
        beside_p50_s=median(beside),
        beside_p95_s=percentile(beside, 0.95),
        ratio=median(ours) / median(beside),
        low=ratios[int(RESAMPLES * 0.025)],
        high=ratios[int(RESAMPLES * 0.975)],
    )
