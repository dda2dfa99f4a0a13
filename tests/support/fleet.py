"""A catalog with both backends, limits and prices, and allocations in it, created by the portal's services."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from allocations.domain.allocation_spec import AllocationRequest
from allocations.models import Allocation
from allocations.requests import services
from portal.clusters.models import Cluster
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog import selectors
from quotas.catalog import services as catalog
from quotas.catalog.discovery import ClassFact, discover
from quotas.catalog.models import Flavor, Pool
from quotas.catalog.sync import sync
from quotas.costs import services as costs
from quotas.limits import services as limits
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node, gpu, plugin_node, slices_of

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = MappingProxyType({"l40s": "1.10", "h100": "3.20"})


def fleet(*teams: Team, more_flavors: int = 0, slug: str = LOCAL, prices: Mapping[str, str] = PRICES) -> Cluster:
    """Create two l40s nodes of four GPUs and one h100 node of four in a cluster, each team with half of it.

    Each of ``more_flavors`` has a node too. ``prices`` are those of a GPU-hour by flavor; others have none.
    """
    cluster = Cluster.objects.get(slug=slug)
    more = [plugin_node(f"x{n}-0", f"NVIDIA-X{n}00") for n in range(1, 1 + more_flavors)]
    nodes = [plugin_node("l40s-0"), plugin_node("l40s-1"), dra_node(), *more]
    slices = [slices_of("h100-0", *(gpu(n) for n in range(4)))]
    classes = [ClassFact("gpu.nvidia.com", "nvidia.com/gpu")]
    sync(slug, discover(nodes, slices, *selectors.known_names(slug), classes=classes), {})
    for flavor in cluster.flavors.all():
        catalog.accept_flavor(SYSTEM, flavor)
    for team in teams:
        for pool in Pool.objects.filter(flavor__cluster=slug):
            limits.set_limit(SYSTEM, team, pool, 4 if pool.flavor.name.startswith("l40s") else 2)
    for flavor in Flavor.objects.filter(name__in=prices):
        costs.set_price(SYSTEM, flavor.name, Decimal(prices[flavor.name]), "EUR", SINCE, "test")
    return cluster


def allocate(user: User, project: Project, offering: str = "l40s/whole", count: int = 1, **fields: Any) -> Allocation:
    return services.request(
        user, AllocationRequest.from_json({"project": project.slug, "offering": offering, "count": count, **fields})
    )


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()
