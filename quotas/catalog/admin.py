"""Django admin pages of the catalog: observed values are read-only, decisions are written by the services."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from portal.core.admin import ReadOnlyAdmin
from quotas.catalog import services
from quotas.catalog.forms import FlavorForm
from quotas.catalog.models import Device, Flavor, FlavorVersion, Node, Offering, Pool, PoolUse, Preset


@admin.register(Flavor)
class FlavorAdmin(admin.ModelAdmin):
    form = FlavorForm
    list_display = ("name", "product", "path", "strategy", "memory_mib", "accepted", "hidden", "group")
    list_filter = ("accepted", "path", "hidden", "group", "cluster")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        """Return the read-only fields: a proposal may be renamed, and an accepted flavor stays accepted."""
        is_accepted = isinstance(obj, Flavor) and obj.accepted
        decided = {"name", *Flavor.DECIDED} - ({"name", "accepted"} if is_accepted else set())
        return [field.name for field in Flavor._meta.fields if field.name not in decided]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Flavor, form: ModelForm, change: bool) -> None:
        services.configure_flavor(request.user, Flavor.objects.get(pk=obj.pk), _changes(form))


@admin.register(Offering)
class OfferingAdmin(admin.ModelAdmin):
    list_display = ("key", "kind", "isolation", "pool", "per_node", "hidden")
    list_filter = ("kind", "hidden")
    list_select_related = ("pool",)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        return [field.name for field in Offering._meta.fields if field.name != "hidden"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Offering, form: ModelForm, change: bool) -> None:
        services.hide_offering(request.user, Offering.objects.get(pk=obj.pk), hidden=obj.hidden)


@admin.register(Preset)
class PresetAdmin(admin.ModelAdmin):
    list_display = ("name", "offering", "count", "hours", "position", "hidden")
    list_select_related = ("offering",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Preset]:
        return super().get_queryset(request).filter(owner=None)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Preset, form: ModelForm, change: bool) -> None:
        row = Preset.objects.get(pk=obj.pk) if change else Preset()
        obj.pk = services.save_preset(request.user, row, _changes(form)).pk


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


def _changes(form: ModelForm) -> dict[str, Any]:
    return {name: form.cleaned_data[name] for name in form.changed_data}
