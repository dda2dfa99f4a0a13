"""GPU-hours of the fleet by flavor, day and category, from the roll-ups and, of what is not rolled up, the ledger."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from quotas.metering import accounts, parts, rolled_up
from quotas.metering.hours import midnights
from quotas.metering.parts import Category


@dataclass(frozen=True)
class FlavorDay:
    """GPU-hours of a flavor from ``start`` on, until midnight UTC or the end of the window."""

    start: datetime
    flavor: str
    parts: Mapping[Category, Fraction]

    @property
    def capacity(self) -> Fraction:
        """Return the GPU-hours that there were: what the parts add up to."""
        return sum(self.parts.values(), Fraction(0))


def by_flavor_and_day(start: datetime, end: datetime) -> list[FlavorDay] | None:
    """Return the GPU-hours in ``[start, end)`` of each flavor and UTC day, newest day first; None if too much of the
    window is not rolled up.
    """
    if start >= end:
        return []
    edges = midnights(start, end)
    found: dict[tuple[int, str], dict[Category, Fraction]] = defaultdict(lambda: dict.fromkeys(Category, Fraction(0)))
    rolled, rest = rolled_up.of_fleet(edges, end)
    if rolled_up.is_too_long(rest):
        return None
    for part in rolled:
        found[part.step, part.flavor][part.category] += part.gpu_hours
    for piece in rest:
        for key, account in accounts.read(piece.start, piece.end, piece.cluster).items():
            for category, amount in parts.gpu_hours(parts.split(account, piece.start, piece.end)).items():
                found[piece.step, key.flavor][category] += amount
    return [
        FlavorDay(edges[step - 1], flavor, amounts)
        for (step, flavor), amounts in sorted(found.items(), key=lambda one: (-one[0][0], one[0][1]))
        if any(amounts.values())
    ]
