"""What each offered pool has, and how much of it is held, used without an allocation, or left."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from allocations.capacity.fleet import Fleet
from allocations.capacity.usage import CurrentUsage
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Offering, Pool


@dataclass(frozen=True)
class PoolUse:
    """A pool, in its units. ``total`` counts healthy devices on usable nodes; ``unmanaged`` of them are used by pods
    and claims without an allocation, ``blocked`` are free and lack CPU, memory or pods of their node.

    ``free_slices`` of the ``largest`` slice fit beside what is held now.
    """

    pool: Pool
    total: int
    held: Fraction
    unmanaged: int
    blocked: int
    largest: Offering
    free_slices: int

    @property
    def left(self) -> Fraction:
        return max(Fraction(0), self.total - self.unmanaged - self.blocked - self.held)


def of_fleet(fleet: Fleet, usage: CurrentUsage) -> list[PoolUse]:
    """Return the offered pools, sorted by key."""
    held = usage.held_amounts
    largest: dict[str, Offering] = {}
    for one in catalog.largest_first(fleet.offerings()):
        largest.setdefault(one.pool.key, one)
    return [
        _pool_use(fleet, offering, held.get(key, {}))
        for key, offering in sorted(largest.items(), key=lambda item: item[0])
    ]


def _pool_use(fleet: Fleet, offering: Offering, held: Mapping[str, int]) -> PoolUse:
    pool, use = offering.pool, getattr(offering.pool, "use", None)
    units = [Fraction(held.get(name, 0), amount) for name, amount in pool.resources.items() if amount]
    return PoolUse(
        pool=pool,
        total=use.total if use else 0,
        held=max(units, default=Fraction(0)),
        unmanaged=use.foreign if use else 0,
        blocked=use.blocked if use else 0,
        largest=offering,
        free_slices=fleet.capacity(offering).free,
    )
