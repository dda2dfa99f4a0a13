"""What there is to ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from django.db.models import QuerySet

from quotas.catalog.facts import Identity
from quotas.catalog.models import Cluster, Flavor, Offering, Pool


@dataclass(frozen=True)
class OfferingCapacity:
    """An offering with what there is of it, in slices.

    `total` are slices on healthy devices that nobody used without an allocation; what allocations hold is not
    subtracted, the ledger of holds knows that.
    """

    offering: Offering
    total: int


def known_names(cluster: Cluster) -> tuple[dict[Identity, str], frozenset[str]]:
    """Names for `discovery.discover`: of this cluster's flavors, and those taken by other clusters."""
    known, taken = {}, set()
    for flavor in Flavor.objects.all():
        if flavor.cluster_id == cluster.pk:
            known[Identity(flavor.product, flavor.path, flavor.strategy)] = flavor.name
        else:
            taken.add(flavor.name)
    return known, frozenset(taken)


def offerings() -> QuerySet[Offering]:
    """All offerings that are not hidden, with cluster, flavor, pool and its use."""
    shown = Offering.objects.filter(hidden=False, flavor__hidden=False)
    return shown.select_related("flavor__cluster", "pool__use")


def offerings_with_capacity() -> list[OfferingCapacity]:
    """Every offering that is not hidden and its capacity, in one query, sorted by key."""
    return [OfferingCapacity(offering, capacity(offering)) for offering in offerings()]


def capacity(offering: Offering) -> int:
    """Slices on healthy nodes, without those used by pods and claims that nobody allocated."""
    use = getattr(offering.pool, "use", None)
    units = max(0, use.total - use.foreign) if use else 0
    return slices_in(units, offering.pool.resources, offering.requests)


def slices_in(units: int | Fraction, unit: Mapping[str, int], requests: Mapping[str, int]) -> int:
    """How many slices drawing `requests` fit into so many units of a pool; a resource the pool lacks gives
    0.
    """
    return min((units * unit.get(name, 0) // amount for name, amount in requests.items() if amount), default=0)


def pools(cluster: Cluster | None = None) -> QuerySet[Pool]:
    """Pools with flavor and use, of one cluster or all: those no longer found too, since limits may refer
    to them.
    """
    rows = Pool.objects.select_related("flavor__cluster", "use").order_by("key")
    return rows.filter(flavor__cluster=cluster) if cluster else rows
