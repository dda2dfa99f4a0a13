"""What has prices, costs and bills: what operators may choose from, and the rows that names stand for."""

from portal.clusters import registry
from portal.core.errors import Invalid
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Flavor, Kind, Node, Offering

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
        *((f"{OFFERING}:{key}", key) for key in offerings),
    ]


def clusters(user: User) -> list[str]:
    """Return the slugs of all clusters. Raises Forbidden."""
    access.require(user, "price.manage", None)
    return sorted(registry.slugs())


def flavor_named(name: str) -> Flavor:
    """Return the flavor. Raises Invalid."""
    row = Flavor.objects.filter(name=name).first()
    if row is None:
        raise Invalid({"flavor": [f"There is no flavor {named(name)}. GET /flavors lists them."]})
    return row


def offering_named(key: str) -> Offering:
    """Return the offering, with its flavor. Raises Invalid."""
    row = Offering.objects.select_related("flavor").filter(key=key).first()
    if row is None:
        raise Invalid({"offering": [f"There is no offering {named(key)}. GET /offerings lists them."]})
    return row


def node_named(cluster: str, name: str) -> Node:
    """Return the node of a cluster. Raises Invalid."""
    row = Node.objects.filter(cluster=cluster, name=name).first()
    if row is None:
        raise Invalid({"node": [f"There is no GPU node {named(name)} in cluster {named(cluster)}."]})
    return row
