from typing import Any

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.apps.registry import Apps
from django.db.models.signals import post_migrate


class ClustersConfig(AppConfig):
    name = "portal.clusters"
    label = "clusters"

    def ready(self) -> None:
        post_migrate.connect(_register, sender=self)


def _register(apps: Apps = global_apps, **sent: Any) -> None:
    """Register the cluster of the environment, unless the migrations went back to before the table existed."""
    try:
        model = apps.get_model("clusters", "Cluster")
    except LookupError:
        return
    from portal.clusters import registry

    registry.register(model)
