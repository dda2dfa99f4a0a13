"""Django admin pages of limits and queue policies, read-only."""

from django.contrib import admin
from django.urls import reverse

from portal.core.admin import ReadOnlyAdmin
from quotas.limits.models import Limit, LimitUse, QueuePolicy, QuotaChange, WeightChange


@admin.register(Limit)
class LimitAdmin(ReadOnlyAdmin):
    list_display = ("holder_kind", "holder", "scope", "nominal", "borrowing", "lending", "units_used")
    list_filter = ("team", "department", "pool")
    list_select_related = ("department", "team", "project", "user", "pool", "offering", "flavor")

    def view_on_site(self, obj: Limit) -> str:
        return reverse("limits")


@admin.register(LimitUse)
class LimitUseAdmin(ReadOnlyAdmin):
    list_display = ("limit", "allocation", "parts", "granted_seq", "released_seq")
    search_fields = ("allocation",)
    list_select_related = ("limit",)


@admin.register(QueuePolicy)
class QueuePolicyAdmin(ReadOnlyAdmin):
    list_display = ("department", "team", "weight", "reclaim", "within")
    list_select_related = ("department", "team")

    def view_on_site(self, obj: QueuePolicy) -> str:
        return reverse("limits")


@admin.register(QuotaChange)
class QuotaChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "department", "team", "pool", "nominal", "borrowing", "lending")
    list_filter = ("team", "department", "pool")
    list_select_related = ("department", "team", "pool")
    date_hierarchy = "at"


@admin.register(WeightChange)
class WeightChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "department", "team", "weight")
    list_filter = ("team", "department")
    list_select_related = ("department", "team")
    date_hierarchy = "at"
