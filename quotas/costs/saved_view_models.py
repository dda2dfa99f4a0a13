"""Views of costs that people saved. Written by `quotas.costs.saved_views` only."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.tenants.models import Team, User


class SavedView(models.Model):
    """A question about costs with a name: of its owner, or of a team if one is given.

    It holds no costs. Who opens it sees what they may see.
    """

    name = models.CharField(max_length=80)
    query = models.TextField(help_text="query of the costs page")
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_views")
    team = models.ForeignKey(
        Team, null=True, blank=True, on_delete=models.CASCADE, related_name="saved_views", help_text="who shares it"
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("name", "pk")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("owner", "name"), condition=Q(team=None), name="saved_view_once_per_owner"),
            models.UniqueConstraint(
                fields=("team", "name"), condition=Q(team__isnull=False), name="saved_view_once_per_team"
            ),
        ]

    def __str__(self) -> str:
        return self.name
