"""A team's quota of a pool as one bar: what each offering uses of it, and what is left."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from allocations.capacity.headroom import Availability
from allocations.limits.services import text
from portal.tenants.models import Team
from quotas.catalog.models import Kind, Offering, Pool
from quotas.limits import counting

LENGTH = 1000
OTHER = "custom claims"


@dataclass(frozen=True)
class BarPart:
    """A part of the bar: ``start`` and ``length`` are of ``LENGTH``; ``number`` is its colour, 0 of what is left."""

    label: str
    amount: str
    start: int
    length: int
    number: int


@dataclass(frozen=True)
class PoolBar:
    """The parts of a pool, as a picture and in words: ``whole GPU 2, MIG slice 3g.40gb 1.5, left 4.5``."""

    parts: list[BarPart]

    @property
    def words(self) -> str:
        return ", ".join(f"{part.label} {part.amount}" for part in self.parts)


def pool_bar(
    team: Team, availability: Availability, pool: Pool, rows: Iterable[Offering], used: Fraction, limit: int
) -> PoolBar:
    """Return the bar of a pool of which the team has reserved ``used`` units of ``limit``. ``rows`` are its offerings,
    in order.
    """
    found: list[tuple[str, Fraction]] = []
    for row in rows:
        slices = availability.quotas.reserved(team, row) if row.kind != Kind.CLAIM else 0
        if slices:
            label = f"{Kind(row.kind).label} {row.profile}".strip()
            found.append((label, counting.demand(row, slices).pools[pool.pk]))
    other = used - sum(amount for _, amount in found)
    if other > 0:
        found.append((OTHER, other))
    left = max(Fraction(0), limit - used)
    whole = max(Fraction(limit), sum((amount for _, amount in found), start=Fraction(0)) + left, Fraction(1))
    parts, start = [], Fraction(0)
    for number, (label, amount) in enumerate([*found, ("left", left)], 1):
        begin, end = round(LENGTH * start / whole), round(LENGTH * (start + amount) / whole)
        is_left = number > len(found)
        parts.append(BarPart(label, text(amount), begin, end - begin, 0 if is_left else (number - 1) % 6 + 1))
        start += amount
    return PoolBar(parts)
