"""A small catalog and usage for tests, created by the portal's services."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID, uuid4

from portal.clusters.models import Cluster
from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.discovery import Discovered, NodeFact, discover
from quotas.catalog.sync import sync
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.services import Attribution
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import plugin_node

T0 = datetime(2026, 11, 2, tzinfo=UTC)


def hour(n: float) -> datetime:
    return T0 + timedelta(hours=n)


def l40s_nodes(count: int = 2, **labels: str) -> list[NodeFact]:
    return [plugin_node(f"l40s-{number}", **labels) for number in range(count)]


def mig_node(name: str = "a100-0") -> NodeFact:
    amounts = {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-3g.40gb": 8}
    return plugin_node(name, "NVIDIA-A100-SXM4-80GB", amounts, "81920")


def cluster(*nodes: NodeFact) -> Cluster:
    """Register a cluster and sync these nodes to the catalog (default: two l40s and one a100)."""
    made = Cluster.objects.get(slug=LOCAL)
    sync(made.slug, found(*nodes), {})
    for flavor in made.flavors.all():
        catalog.accept_flavor(SYSTEM, flavor)
    return made


def found(*nodes: NodeFact) -> Discovered:
    return discover(nodes or (*l40s_nodes(), mig_node()), [])


def attribution(**values: Any) -> Attribution:
    """Return an attribution of a whole l40s to ada in vision-train, changed by `values`."""
    ada = Attribution(
        offering="l40s/whole",
        flavor="l40s",
        kind="whole",
        gpu_share=Fraction(1),
        cluster="local",
        department="research",
        team="vision",
        project="vision-train",
        member="ada",
        namespace="vision-train",
    )
    return replace(ada, **values)


def used(
    start: datetime, end: datetime | None, quantity: int = 1, allocation: UUID | None = None, **values: Any
) -> UsageInterval:
    """Record an interval in the ledger, on a slot of its own."""
    key = uuid4()
    row = metering.open_interval(
        key, allocation or uuid4(), f"slot:{key}", start, attribution(**values), quantity, {"kind": "test"}
    )
    if end:
        metering.close_interval(key, end, {"kind": "test"})
    return row
