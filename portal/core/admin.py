from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import JSONField, TextField
from django.http import HttpRequest
from simple_history.models import HistoricalChanges

from portal.core.models import AuditEntry, AuditSeal, WorkItem

PACKAGES = ("portal", "quotas", "allocations")


class ReadOnlyAdmin(admin.ModelAdmin):
    """An admin page for rows that only the portal writes. Its list has all short fields, unless it names some."""

    def get_list_display(self, request: HttpRequest) -> Any:
        if self.list_display != ("__str__",):
            return self.list_display
        fields = self.model._meta.concrete_fields
        return [one.name for one in fields if not one.primary_key and not isinstance(one, TextField | JSONField)]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def register_others() -> None:
    """Register the models that no module `admin` has registered. Called once all have been imported."""
    for config in apps.get_app_configs():
        for model in config.get_models() if config.name.startswith(PACKAGES) else ():
            if not admin.site.is_registered(model) and not issubclass(model, HistoricalChanges):
                admin.site.register(model, ReadOnlyAdmin)


@admin.register(WorkItem)
class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ("target", "due_at", "attempts", "error")
    search_fields = ("target", "error")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor", "action", "target", "team", "project")
    list_filter = ("at",)
    search_fields = ("actor", "action", "target")
    ordering = ("-pk",)
    show_full_result_count = False


@admin.register(AuditSeal)
class AuditSealAdmin(ReadOnlyAdmin):
    list_display = ("position", "entry", "sealed_at", "digest")
    list_select_related = ("entry",)
    ordering = ("-pk",)
    show_full_result_count = False
