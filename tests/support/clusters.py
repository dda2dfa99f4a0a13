"""The cluster that the environment of the tests names, as every test finds it registered, and others beside it."""

from portal.clusters.models import Cluster
from portal.core import clock

LOCAL = "local"


def make_cluster(slug: str = "far") -> Cluster:
    """Another cluster, which nothing in the environment reaches."""
    return Cluster.objects.create(slug=slug, name=slug.capitalize(), created_at=clock.now())
