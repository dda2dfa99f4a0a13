"""What is stranded of the fleet now, and the slice that would fit there if it were offered."""

from collections import defaultdict
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


def current() -> list[StrandedGpus]:
    """Return what is stranded now, by flavor and the slice that would fit; a fixed number of queries."""
    now, catalogue = clock.now(), versions.read()
    found: dict[tuple[str, str], list[Fraction]] = defaultdict(list)
    for key, account in accounts.read(now, now + MICROSECOND).items():
        split = parts.split(account, now, now + MICROSECOND)
        stranded = sum((part.gpus for part in split if part.category == Category.STRANDED), Fraction(0))
        if stranded:
            devices = tuple(sorted(use.device for use in account.uses))
            found[key.flavor, catalogue.at(key.flavor, now).profile_to_offer(devices)].append(stranded)
    return [StrandedGpus(*key, sum(gpus, Fraction(0)), len(gpus)) for key, gpus in sorted(found.items())]
