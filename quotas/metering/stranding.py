"""What is stranded of GPUs: free, but no offered slice fits. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class StrandedGpus:
    """``gpus`` of a flavor that are stranded on ``count`` GPUs; ``profile`` is the slice that would fit, "" if none."""

    flavor: str
    profile: str
    gpus: Fraction
    count: int


@dataclass(frozen=True)
class StrandedGpu:
    """``gpus`` that are stranded on one GPU, beside ``devices`` that are in use, as DRA names them. ``profile`` is the
    slice that would fit, "" if none.
    """

    cluster: str
    flavor: str
    node: str
    name: str
    profile: str
    gpus: Fraction
    devices: Sequence[str]


def by_profile(gpus: Iterable[StrandedGpu]) -> list[StrandedGpus]:
    """Return the sums by flavor and the slice that would fit."""
    found: dict[tuple[str, str], list[Fraction]] = defaultdict(list)
    for one in gpus:
        found[one.flavor, one.profile].append(one.gpus)
    return [StrandedGpus(*key, sum(amounts, Fraction(0)), len(amounts)) for key, amounts in sorted(found.items())]
