"""How much of each pool a team may hold at once."""

from typing import ClassVar

from django.core.validators import MaxValueValidator
from django.db import models
from simple_history.models import HistoricalRecords

from portal.tenants.models import Team
from quotas.catalog.models import Pool

MOST_UNITS = 1_000_000


class Limit(models.Model):
    """A team's nominal quota of one pool, in pool units (whole GPUs for `<flavor>/slices`)."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="limits")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="limits")
    nominal = models.PositiveIntegerField(validators=[MaxValueValidator(MOST_UNITS)])
    history = HistoricalRecords()

    class Meta:
        ordering = ("team__slug", "pool__key")
        constraints: ClassVar = [models.UniqueConstraint(fields=("team", "pool"), name="limit_once_per_team_and_pool")]

    def __str__(self) -> str:
        return f"{self.team} {self.pool}: {self.nominal}"
