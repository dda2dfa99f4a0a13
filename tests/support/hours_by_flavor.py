"""GPU-hours of the fleet by flavor and category, from the ledger alone: what roll-ups and bills are compared with."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from quotas.metering import accounts, parts
from quotas.metering.parts import MICROSECOND, MICROSECONDS_PER_HOUR, Account, Category


@dataclass(frozen=True)
class FlavorHours:
    """GPU-hours of a flavor that there were (``capacity``) and their parts. ``flavor`` is "" for nodes without one."""

    flavor: str
    capacity: Fraction
    parts: Mapping[Category, Fraction]

    @property
    def is_balanced(self) -> bool:
        """Return whether the parts add up to the capacity, exactly."""
        return sum(self.parts.values()) == self.capacity


def capacity_hours(account: Account, start: datetime, end: datetime) -> Fraction:
    """Return the GPU-hours that exist in ``[start, end)``, computed from each capacity by itself."""
    total = Fraction(0)
    for one in account.capacity:
        begin, until = max(one.start, start), min(one.end or end, end)
        total += one.gpus * Fraction(max(0, (until - begin) // MICROSECOND), MICROSECONDS_PER_HOUR)
    return total


def by_flavor(start: datetime, end: datetime) -> list[FlavorHours]:
    """Return the GPU-hours in ``[start, end)`` of each flavor, by name; reads every interval in the window."""
    capacity: dict[str, Fraction] = defaultdict(Fraction)
    hours: dict[str, dict[Category, Fraction]] = defaultdict(lambda: dict.fromkeys(Category, Fraction(0)))
    for key, account in accounts.read(start, end).items():
        capacity[key.flavor] += capacity_hours(account, start, end)
        for category, amount in parts.gpu_hours(parts.split(account, start, end)).items():
            hours[key.flavor][category] += amount
    return [FlavorHours(flavor, capacity[flavor], hours[flavor]) for flavor in sorted(hours)]
