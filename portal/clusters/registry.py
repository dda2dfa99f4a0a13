"""The registered clusters. One is registered from the environment, after each `migrate` and when a watcher starts."""

from django.conf import settings

from portal.clusters.models import Cluster
from portal.core import clock


def own() -> str:
    """Return the slug of the environment's cluster, for which this process has credentials."""
    slug: str = settings.CLUSTER_NAME
    return slug


def register(model: type[Cluster] = Cluster) -> str:
    """Create or update the row of the environment's cluster; return its slug. Idempotent."""
    server = settings.KUBERNETES_PUBLIC_URL
    made = {"name": own(), "server": server, "created_at": clock.now()}
    model.objects.update_or_create(slug=own(), defaults={"server": server}, create_defaults=made)
    return own()


def slugs() -> list[str]:
    """Return the slugs of all clusters, sorted. One query."""
    return list(Cluster.objects.values_list("slug", flat=True))
