"""Where the names on the pages of the timeline lead: flavors, nodes, the costs of projects, and tables of times."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse

from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_filters import costs_of
from frontend.presenters.fleet import node_url
from quotas.catalog.models import Flavor, Node
from quotas.costs.asset_strips import NodeKey
from quotas.costs.assets import AssetKey


@dataclass(frozen=True)
class AssetLinks:
    """``address`` has the window and the time zone of the page. ``flavors`` and ``nodes``, as (cluster, name), are
    those that have a page.
    """

    address: Mapping[str, str]
    flavors: Collection[str] = field(default_factory=set)
    nodes: Collection[tuple[str, str]] = field(default_factory=set)

    def flavor(self, name: str) -> str:
        return reverse("flavor", args=[name]) if name in self.flavors else ""

    def node(self, key: NodeKey) -> str:
        return node_url(key.cluster, key.node) if (key.cluster, key.node) in self.nodes else ""

    def intervals(self, key: AssetKey) -> str:
        """Return the address of what a GPU, or all of a node, was, as a table."""
        query = {"window": self.address["window"], **({"gpu": key.name} if key.name else {})}
        return f"{reverse('cost-assets-node', args=[key.cluster, key.node])}?{urlencode(query)}"

    def project(self, slug: str, node: str) -> str:
        """Return the address of what a project costs on a node."""
        return costs_of(CostsAddress(self.address), [("project", slug), ("node", node)])


def read(address: Mapping[str, str], nodes: Iterable[str]) -> AssetLinks:
    """Return the links of a page with these nodes, for platform staff; two queries."""
    found = Node.objects.filter(name__in=set(nodes)).order_by().values_list("cluster", "name")
    return AssetLinks(address, set(Flavor.objects.order_by().values_list("name", flat=True)), set(found))
