"""Two nodes of two GPUs each, which DRA divides on demand."""

from datetime import UTC, datetime

from portal.clusters.models import Cluster
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Pool
from quotas.catalog.sync import sync
from quotas.limits import services as limits
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node, slices_of
from tests.support.mig_facts import cut_gpu
from tests.support.people import person

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def member_of(team: Team) -> User:
    """Return a member of the team, which may hold all of two nodes of two GPUs each."""
    cluster = Cluster.objects.get(slug=LOCAL)
    nodes = ("h100-0", "h100-1")
    slices = [slices_of(node, *cut_gpu(node, 0), *cut_gpu(node, 1)) for node in nodes]
    sync(cluster.slug, discover([dra_node(node) for node in nodes], slices), {})
    for flavor in cluster.flavors.all():
        catalog.accept_flavor(SYSTEM, flavor)
    for pool in Pool.objects.all():
        limits.set_limit(SYSTEM, team, pool, 4)
    return person(team)
