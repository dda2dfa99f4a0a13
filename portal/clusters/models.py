from django.core.validators import validate_slug
from django.db import models


class Cluster(models.Model):
    """A Kubernetes cluster. Written by `portal.clusters.registry` only.

    The slug is the primary key, and every row about the cluster refers to it, since two clusters may use the same
    names. The address and the credentials are in the environment (`KUBECONFIG`).
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
