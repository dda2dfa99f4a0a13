"""A mirrored node of eight H100 with dynamic MIG, as its driver publishes it, and the catalog discovered from it."""

from allocations.models import MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.inventory import slice_fact
from demo import prices
from portal.clusters.models import Cluster
from portal.core import clock
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Pool
from quotas.catalog.sync import sync
from quotas.limits import services as limits
from tests.support.claims import facts
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node


def h100_node(team: Team, gpus: int = 4) -> None:
    """Create the node and its catalog; the team may hold this many GPUs of it."""
    rows = [
        MirrorObject(
            cluster_id=LOCAL,
            kind="ResourceSlice",
            name=f"slice-{n}",
            uid=f"{n}",
            resource_version=1,
            facts=one,
            seen_at=clock.now(),
        )
        for n, one in enumerate(facts("h100", 1))
    ]
    MirrorObject.objects.bulk_create(rows)
    cluster = Cluster.objects.get(slug=LOCAL)
    sync(cluster.slug, discover([dra_node("h100-0")], [slice_fact(mirror.observed_object(row)) for row in rows]), {})
    catalog.accept_flavor(SYSTEM, cluster.flavors.get(name="h100"))
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="h100/slices"), gpus)
    prices.price()


def hold_devices(*devices: str) -> None:
    """Create a claim of another user that has these devices of the node."""
    results = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": device} for device in devices]
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ResourceClaim",
        namespace="others",
        name="-".join(devices)[:200],
        uid="c",
        resource_version=2,
        facts={"devices": results},
        seen_at=clock.now(),
    )
