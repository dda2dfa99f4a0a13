"""Django admin pages of the catalog, read-only; what operators decide has pages of its own."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from portal.core.admin import ReadOnlyAdmin
from quotas.catalog.models import Device, Flavor, FlavorVersion, Node, Offering, Pool, PoolUse, Preset


@admin.register(Flavor)
class FlavorAdmin(ReadOnlyAdmin):
    list_display = ("name", "product", "path", "strategy", "memory_mib", "accepted", "hidden", "group")
    list_filter = ("accepted", "path", "hidden", "group", "cluster")

    def view_on_site(self, obj: Flavor) -> str:
        return reverse("flavor", args=[obj.name])


@admin.register(Offering)
class OfferingAdmin(ReadOnlyAdmin):
    list_display = ("key", "kind", "isolation", "pool", "per_node", "hidden")
    list_filter = ("kind", "hidden")
    list_select_related = ("pool",)

    def view_on_site(self, obj: Offering) -> str:
        return reverse("flavor", args=[obj.flavor.name])


@admin.register(Preset)
class PresetAdmin(ReadOnlyAdmin):
    list_display = ("name", "offering", "count", "hours", "position", "hidden")
    list_select_related = ("offering",)

    def view_on_site(self, obj: Preset) -> str:
        return reverse("presets")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Preset]:
        return super().get_queryset(request).filter(owner=None)


@admin.register(FlavorVersion)
class FlavorVersionAdmin(ReadOnlyAdmin):
    list_display = ("flavor", "since")
    list_select_related = ("flavor",)
    list_filter = ("flavor",)


@admin.register(Pool)
class PoolAdmin(ReadOnlyAdmin):
    list_display = ("key", "resources")


@admin.register(PoolUse)
class PoolUseAdmin(ReadOnlyAdmin):
    list_display = ("pool", "total", "foreign", "blocked")
    list_select_related = ("pool",)


@admin.register(Node)
class NodeAdmin(ReadOnlyAdmin):
    list_display = ("name", "flavor", "ready", "tainted", "present", "blocked_gpus", "problem")
    list_filter = ("ready", "tainted", "present", "flavor")
    list_select_related = ("flavor",)


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    list_display = ("uuid", "node", "name", "flavor", "healthy", "present")
    list_filter = ("healthy", "present", "flavor")
    list_select_related = ("node", "flavor")
    search_fields = ("uuid", "node__name")
