"""The cluster in the environment of the tests, registered for every test, and further clusters."""

from portal.clusters.models import Cluster
from portal.core import clock

LOCAL = "local"


def make_cluster(slug: str = "far") -> Cluster:
    """Register another cluster, for which the environment has no credentials."""
    return Cluster.objects.create(slug=slug, name=slug.capitalize(), created_at=clock.now())
