"""Prices of GPU-hours by flavor and date."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.core.models import AppendOnly
from quotas.catalog.models import Flavor


class Price(AppendOnly):
    """The price of one whole GPU for one hour, from `valid_from` until the next row of the flavor.

    Rows never change, and the end is not stored: so prices cannot overlap, and past charges cannot change.
    """

    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="prices")
    valid_from = models.DateTimeField()
    per_gpu_hour = models.DecimalField(max_digits=20, decimal_places=10)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=200, help_text="where the figure comes from")

    class Meta:
        ordering = ("flavor__name", "-valid_from")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("flavor", "valid_from"), name="price_once_per_moment"),
            models.CheckConstraint(condition=Q(per_gpu_hour__gte=0), name="price_not_negative"),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="price_currency_iso4217"),
        ]

    def __str__(self) -> str:
        return f"{self.flavor} {self.per_gpu_hour.normalize():f} {self.currency} from {self.valid_from:%F %T}"
