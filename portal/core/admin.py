from django.contrib import admin
from django.http import HttpRequest

from portal.core.models import AuditEntry, AuditSeal, Heartbeat, WorkItem


class ReadOnlyAdmin(admin.ModelAdmin):
    """An admin page for rows that only the portal writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(WorkItem)
class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ("target", "due_at", "attempts", "error")
    search_fields = ("target", "error")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("name", "at")


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
