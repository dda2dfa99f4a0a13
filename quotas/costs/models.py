"""Prices of GPU-hours and slice-hours by date, and what capacity costs."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.core.models import AppendOnly
from quotas.catalog.models import Flavor, Offering
from quotas.costs.bill_models import Bill as Bill
from quotas.costs.bill_models import SharedCost as SharedCost
from quotas.costs.capacity_models import CapacityCostDay as CapacityCostDay
from quotas.costs.capacity_models import CapacityCostHour as CapacityCostHour
from quotas.costs.capacity_models import CapacityCostMonth as CapacityCostMonth
from quotas.costs.capacity_models import NodeCost as NodeCost
from quotas.costs.capacity_models import NodeInterval as NodeInterval
from quotas.costs.capacity_models import NodeTerm as NodeTerm
from quotas.costs.saved_view_models import SavedView as SavedView


class Price(AppendOnly):
    """What a holder pays for an hour, from `valid_from` until the next row of the flavor or offering.

    Of a flavor it is the price of a whole GPU. Of an offering it is the list price of a slice, which prevails; without
    an amount, the flavor's price counts again. Rows never change, one that has not begun may be withdrawn, and the end
    is not stored: so prices cannot overlap, and past charges cannot change.
    """

    may_be_withdrawn = True

    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="prices")
    offering = models.ForeignKey(
        Offering,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="prices",
        help_text="list price of a slice of it; empty: the price of the flavor's GPUs",
    )
    valid_from = models.DateTimeField()
    per_gpu_hour = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    per_slice_hour = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=200, blank=True, help_text="where the figure comes from")

    class Meta:
        ordering = ("flavor__name", "-valid_from")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("flavor", "valid_from"), condition=Q(offering=None), name="price_once_per_moment"
            ),
            models.UniqueConstraint(
                fields=("offering", "valid_from"),
                condition=Q(offering__isnull=False),
                name="price_once_per_moment_of_offering",
            ),
            models.CheckConstraint(
                condition=Q(offering=None, per_gpu_hour__isnull=False, per_slice_hour=None)
                | Q(offering__isnull=False, per_gpu_hour=None),
                name="price_of_gpu_or_slice",
            ),
            models.CheckConstraint(condition=Q(per_gpu_hour__gte=0, per_slice_hour__gte=0), name="price_not_negative"),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="price_currency_iso4217"),
        ]

    def __str__(self) -> str:
        amount = self.per_gpu_hour if self.offering is None else self.per_slice_hour
        words = "the price of its flavor" if amount is None else f"{amount.normalize():f} {self.currency}"
        return f"{self.offering or self.flavor} {words} from {self.valid_from:%F %T}"
