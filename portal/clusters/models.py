from django.core.validators import validate_slug
from django.db import models


class Cluster(models.Model):
    """A Kubernetes cluster. Written by `portal.clusters.registry` only.

    Its slug is its key, which every row about the cluster has: names in two clusters are never the same thing. How it
    is reached, and by which credentials, is in the environment (`KUBECONFIG`), not here.
    """

    slug = models.CharField(max_length=50, primary_key=True, validators=[validate_slug])
    name = models.CharField(max_length=100)
    server = models.CharField(
        max_length=255, blank=True, help_text="API server in people's kubeconfigs; empty: as the portal reaches it"
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug
