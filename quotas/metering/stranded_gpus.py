"""Reads what is stranded of the fleet now, and the slice that would fit there if it were offered."""

from fractions import Fraction

from portal.core import clock
from quotas.catalog import versions
from quotas.metering import accounts, parts, stranding
from quotas.metering.parts import MICROSECOND, Category
from quotas.metering.stranding import StrandedGpu, StrandedGpus


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
    return stranding.by_profile(each())
