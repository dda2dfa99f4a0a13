"""GPU-hours of the fleet by flavor, day and category, from the roll-ups and, of what is not rolled up, the ledger."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from quotas.metering import accounts, ledger_starts, parts, rolled_up
from quotas.metering.hours import midnights
from quotas.metering.parts import Category


@dataclass(frozen=True)
class FlavorDay:
    """GPU-hours of a flavor from ``start`` on, until midnight or the end of the window. If the capacity of its
    clusters is not recorded from then on, only what was held is known.
    """

    start: datetime
    flavor: str
    parts: Mapping[Category, Fraction]
    is_capacity_known: bool = True

    @property
    def capacity(self) -> Fraction:
        """Return the GPU-hours that there were: what the parts add up to."""
        return sum(self.parts.values(), Fraction(0))


def by_flavor_and_day(start: datetime, end: datetime, days: Sequence[datetime] = ()) -> list[FlavorDay] | None:
    """Return the GPU-hours in ``[start, end)`` of each flavor and day, newest day first; None if too much of the window
    is not rolled up. ``days`` are the two bounds and the midnights between them, of UTC unless given.
    """
    if start >= end:
        return []
    edges = days or midnights(start, end)
    found: dict[tuple[int, str], dict[Category, Fraction]] = defaultdict(lambda: dict.fromkeys(Category, Fraction(0)))
    rolled, rest = rolled_up.of_fleet(edges, end)
    if rolled_up.is_too_long(rest):
        return None
    since, clusters = ledger_starts.capacity_recorded_since(), set[tuple[int, str, str]]()
    for part in rolled:
        found[part.step, part.flavor][part.category] += part.gpu_hours
        clusters.add((part.step, part.flavor, part.cluster))
    for piece in rest:
        for key, account in accounts.read(piece.start, piece.end, piece.cluster).items():
            for category, amount in parts.gpu_hours(parts.split(account, piece.start, piece.end)).items():
                found[piece.step, key.flavor][category] += amount
            clusters.add((piece.step, key.flavor, piece.cluster))
    unknown = {
        (step, flavor)
        for step, flavor, cluster in clusters
        if (at := since.get(cluster)) is None or at > edges[step - 1]
    }
    return [
        FlavorDay(edges[step - 1], flavor, amounts, is_capacity_known=(step, flavor) not in unknown)
        for (step, flavor), amounts in sorted(found.items(), key=lambda one: (-one[0][0], one[0][1]))
        if any(amounts.values())
    ]
