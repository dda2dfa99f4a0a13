"""What is stranded of the fleet now, and the slice that would fit there if it were offered."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from portal.core import clock
from quotas.catalog import versions
from quotas.metering import accounts, parts
from quotas.metering.parts import MICROSECOND, Category


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


def each() -> list[StrandedGpu]:
    """Return the GPUs of which something is stranded now, by flavor, cluster, node and name; a fixed number of
    queries.
    """
    now, catalogue = clock.now(), versions.read()
    found = []
    for key, account in accounts.read(now, now + MICROSECOND).items():
        split = parts.split(account, now, now + MICROSECOND)
        stranded = sum((part.gpus for part in split if part.category == Category.STRANDED), Fraction(0))
        if stranded:
            devices = tuple(sorted(use.device for use in account.uses))
            profile = catalogue.at(key.flavor, now).profile_to_offer(devices)
            found.append(StrandedGpu(key.cluster, key.flavor, key.node, key.name, profile, stranded, devices))
    return sorted(found, key=lambda one: (one.flavor, one.cluster, one.node, len(one.name), one.name))


def current() -> list[StrandedGpus]:
    """Return what is stranded now, by flavor and the slice that would fit; a fixed number of queries."""
    return by_profile(each())


def by_profile(gpus: Iterable[StrandedGpu]) -> list[StrandedGpus]:
    """Return the sums by flavor and the slice that would fit."""
    found: dict[tuple[str, str], list[Fraction]] = defaultdict(list)
    for one in gpus:
        found[one.flavor, one.profile].append(one.gpus)
    return [StrandedGpus(*key, sum(amounts, Fraction(0)), len(amounts)) for key, amounts in sorted(found.items())]
