"""The history of quotas and fair-share weights, from which it is computed whose idle GPUs were."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.core.models import AppendOnly
from portal.tenants.models import Department, Team
from quotas.catalog.models import Pool

ONE_HOLDER = Q(department__isnull=False, team=None) | Q(department=None, team__isnull=False)


class QuotaChange(AppendOnly):
    """What a department or team may have of a pool from `at` on; append-only.

    The amounts are those of `Limit`: all zero from a removal on. Before its first row a holder had no quota of the
    pool that is known.
    """

    at = models.DateTimeField()
    department = models.ForeignKey(Department, null=True, on_delete=models.PROTECT, related_name="+")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+")
    nominal = models.PositiveIntegerField()
    borrowing = models.PositiveIntegerField(null=True)
    lending = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ("-at", "-id")
        constraints: ClassVar = [models.CheckConstraint(condition=ONE_HOLDER, name="quota_change_has_one_holder")]
        indexes: ClassVar = [models.Index(fields=("at",), name="quota_change_at")]

    def __str__(self) -> str:
        return f"{self.team or self.department} {self.pool}: {self.nominal} from {self.at:%F %T}"


class WeightChange(AppendOnly):
    """The fair-share weight of a department or team from `at` on; append-only. Before its first row it was 1."""

    at = models.DateTimeField()
    department = models.ForeignKey(Department, null=True, on_delete=models.PROTECT, related_name="+")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    weight = models.DecimalField(max_digits=9, decimal_places=3)

    class Meta:
        ordering = ("-at", "-id")
        constraints: ClassVar = [models.CheckConstraint(condition=ONE_HOLDER, name="weight_change_has_one_holder")]

    def __str__(self) -> str:
        return f"{self.team or self.department}: weight {self.weight} from {self.at:%F %T}"
