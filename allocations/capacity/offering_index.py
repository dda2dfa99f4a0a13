"""Offerings with their pools, and the units of pools that slices and claims use."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

from allocations.domain.custom_claim import CustomClaim
from allocations.models import Allocation
from portal.core.query_templates import without_parameters
from portal.core.reading import Batch, Compiled, Rows
from quotas.catalog.models import Flavor, Kind, Offering, Pool
from quotas.limits import counting
from quotas.limits.counting import ResourceDemand

Amounts = Mapping[str, Mapping[str, int]]
"""Pool → resource → amount."""


class ReservedClaim(NamedTuple):
    """A custom claim whose lease reserves quota, with the units that it can use at most."""

    team: str
    offering: str
    units: Mapping[str, int]


@cache
def _all() -> Compiled:
    return without_parameters(Rows(Offering.objects.select_related("pool__use", "flavor")))


class OfferingIndex:
    """All offerings by key, read with the rest of the ``batch`` when first needed."""

    def __init__(self, batch: Batch | None = None) -> None:
        self._rows = (batch or Batch()).add(_all())

    @cached_property
    def _by_key(self) -> dict[str, Offering]:
        return {row.key: row for row in self._rows()}

    @cached_property
    def _by_id(self) -> dict[int, Offering]:
        return {row.pk: row for row in self._rows()}

    def get(self, key: str) -> Offering | None:
        return self._by_key.get(key)

    def by_id(self, id_: int) -> Offering | None:
        return self._by_id.get(id_)

    def offerings(self) -> list[Offering]:
        return list(self._by_key.values())

    def offered(self) -> list[Offering]:
        """Return what is offered, sorted by key."""
        return [row for _, row in sorted(self._by_key.items()) if row.is_offered]

    def listed(self) -> list[Offering]:
        """Return what is offered, in the order in which PostgreSQL sorts their keys."""
        return [row for row in self._by_key.values() if row.is_offered]

    def flavors(self) -> list[Flavor]:
        """Return the flavors of all offerings, each once."""
        return list({row.flavor_id: row.flavor for row in self._by_key.values()}.values())

    def pools_of(self, flavor: int) -> list[Pool]:
        """Return the pools of a flavor (by its id), sorted by key."""
        pools = {row.pool.key: row.pool for row in self._by_key.values() if row.flavor_id == flavor}
        return [pool for _, pool in sorted(pools.items())]

    def demand_of(self, row: Allocation) -> ResourceDemand:
        """Return the demand of an allocation; needs its offering's pool."""
        return self.demand(row.offering, row.count, row.claim)

    def demand(self, offering: Offering, count: int, claim: Mapping[str, Any] | None) -> ResourceDemand:
        """Return the demand of so many slices, or of a custom claim as its column has it; needs the offering's pool."""
        custom = CustomClaim.of_column(claim)
        if custom is None or custom.built is None:
            return counting.demand(offering, count)
        return self.demand_of_claim(offering, custom.built.units, custom.built.gpus)

    def demand_of_claim(self, offering: Offering, amounts: Mapping[str, int], gpus: Fraction) -> ResourceDemand:
        """Return the largest demand of a custom claim, as limits count it."""
        units = {
            pool.pk: max(Fraction(amounts.get(name, 0), amount) for name, amount in pool.resources.items())
            for pool in self.pools_of(offering.flavor_id)
        }
        return ResourceDemand(offering.pk, offering.flavor_id, 1, gpus, {pk: n for pk, n in units.items() if n})

    def amounts(self, slices: Mapping[str, int], claims: Iterable[ReservedClaim]) -> Amounts:
        """Return what slices (offering key → count) and claims use of each pool (by key)."""
        used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for key, count in slices.items():
            if offering := self._by_key.get(key):
                for resource, amount in offering.requests.items():
                    used[offering.pool.key][resource] += amount * count
        for claim in claims:
            if offering := self._by_key.get(claim.offering):
                for pool in self.pools_of(offering.flavor_id):
                    for resource in claim.units.keys() & pool.resources.keys():
                        used[pool.key][resource] += claim.units[resource]
        return used


def amounts_per_slice(offering: Offering) -> Mapping[str, int]:
    """Return what one slice uses of its pool; for custom claims, one unit of the flavor's main pool."""
    amounts: Mapping[str, int] = offering.pool.resources if offering.kind == Kind.CLAIM else offering.requests
    return amounts
