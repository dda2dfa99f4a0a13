"""Django admin pages of prices, costs and bills, read-only: they are set on the pages of prices and bills."""

from django.contrib import admin
from django.urls import reverse

from portal.core.admin import ReadOnlyAdmin
from quotas.costs.models import (
    Bill,
    CapacityCostDay,
    CapacityCostHour,
    CapacityCostMonth,
    NodeCost,
    NodeInterval,
    NodeTerm,
    Price,
    SavedView,
    SharedCost,
)


class DatedAdmin(ReadOnlyAdmin):
    """Rows that begin at a time, which are set on the page of prices."""

    def view_on_site(self, obj: object) -> str:
        return reverse("prices")


@admin.register(Price)
class PriceAdmin(DatedAdmin):
    list_display = ("flavor", "offering", "per_gpu_hour", "per_slice_hour", "currency", "valid_from", "source")
    list_filter = ("flavor",)
    list_select_related = ("flavor", "offering")


@admin.register(NodeCost)
class NodeCostAdmin(DatedAdmin):
    list_display = ("flavor", "term", "node", "per_hour", "per", "currency", "valid_from", "source")
    list_filter = ("flavor", "term")
    list_select_related = ("flavor", "node")


@admin.register(NodeTerm)
class NodeTermAdmin(DatedAdmin):
    list_display = ("node", "term", "valid_from")
    list_filter = ("term",)
    list_select_related = ("node",)


@admin.register(NodeInterval)
class NodeIntervalAdmin(ReadOnlyAdmin):
    list_display = ("node", "term", "cpu_millicores", "memory_mib", "start", "end")
    list_filter = ("cluster", "term")
    search_fields = ("node",)


@admin.register(Bill)
class BillAdmin(ReadOnlyAdmin):
    list_display = ("month", "cluster", "amount", "currency", "source", "recorded_at")
    list_filter = ("cluster",)


@admin.register(SharedCost)
class SharedCostAdmin(ReadOnlyAdmin):
    list_display = ("name", "month", "amount", "currency", "split", "cluster", "source")
    list_filter = ("split",)


@admin.register(CapacityCostHour, CapacityCostDay, CapacityCostMonth)
class CapacityCostAdmin(ReadOnlyAdmin):
    list_display = ("start", "cluster", "flavor", "term", "part", "price", "denominator", "amount")
    list_filter = ("cluster", "part", "term")
    show_full_result_count = False


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "team", "created_at")
    list_filter = ("team",)
    list_select_related = ("owner", "team")
    search_fields = ("name", "owner__username")
