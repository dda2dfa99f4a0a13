"""What operators may set prices, costs and bills of. Everybody else is refused."""

from portal.clusters import registry
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Flavor, Kind, Offering

FLAVOR, OFFERING = "flavor", "offering"


def flavors(user: User) -> list[str]:
    """Return the names of all flavors. Raises Forbidden."""
    access.require(user, "price.manage", None)
    return list(Flavor.objects.order_by("name").values_list("name", flat=True))


def priced(user: User) -> list[tuple[str, str]]:
    """Return what has a price, as ``flavor:h100`` or ``offering:h100/mig-1g.10gb``, each with its words: flavors, and
    offerings but claims, which have no list price. Raises Forbidden.
    """
    offerings = Offering.objects.exclude(kind=Kind.CLAIM).order_by("key").values_list("key", flat=True)
    return [
        *((f"{FLAVOR}:{name}", f"{name}, a GPU") for name in flavors(user)),
        *((f"{OFFERING}:{key}", f"{key}, a slice") for key in offerings),
    ]


def clusters(user: User) -> list[str]:
    """Return the slugs of all clusters. Raises Forbidden."""
    access.require(user, "price.manage", None)
    return sorted(registry.slugs())
