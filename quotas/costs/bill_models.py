"""What a month cost: bills of clusters, and fixed costs that all share."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.clusters.models import Cluster
from portal.core.models import AppendOnly


def _starts_month(field: str) -> Q:
    return Q(**{f"{field}__day": 1})


class Bill(AppendOnly):
    """The bill of a cluster for a month, which begins at ``month``, UTC. Of several the one entered last counts."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    month = models.DateField(help_text="its first day")
    amount = models.DecimalField(max_digits=20, decimal_places=4)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=200, blank=True, help_text="such as the number of the invoice")
    recorded_at = models.DateTimeField()

    class Meta:
        ordering = ("-month", "-id")
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="bill_not_negative"),
            models.CheckConstraint(condition=_starts_month("month"), name="bill_of_a_month"),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="bill_currency_iso4217"),
        ]
        indexes: ClassVar = [models.Index(fields=("cluster", "month", "-id"), name="bill_newest")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.month:%Y-%m}: {self.amount.normalize():f} {self.currency}"


class SharedCost(AppendOnly):
    """A fixed cost of each month from ``month`` on, such as network or support, until the next row of its name; 0 ends
    it. Rows never change.

    It is split by what GPUs cost, or evenly between these teams. ``cluster`` is that whose GPUs count, null for all.
    """

    may_be_withdrawn = True

    class Split(models.TextChoices):
        WEIGHTED = "weighted", "by cost"
        EVEN = "even", "evenly"

    name = models.CharField(max_length=63)
    cluster = models.ForeignKey(
        Cluster,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_column="cluster",
        db_index=False,
    )
    month = models.DateField(help_text="the first day of the first month")
    amount = models.DecimalField(max_digits=20, decimal_places=4, help_text="of a month")
    currency = models.CharField(max_length=3)
    split = models.CharField(max_length=8, choices=Split)
    teams = models.JSONField(default=list, blank=True, help_text="between which it is split evenly")
    source = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("-month", "-id")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("name", "month"), name="shared_cost_once_per_month"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="shared_cost_not_negative"),
            models.CheckConstraint(condition=_starts_month("month"), name="shared_cost_of_months"),
            models.CheckConstraint(
                condition=Q(split="weighted", teams=[]) | (Q(split="even") & ~Q(teams=[])), name="shared_cost_teams"
            ),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="shared_cost_currency_iso4217"),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.amount.normalize():f} {self.currency} a month from {self.month:%Y-%m}"
