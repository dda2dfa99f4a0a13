"""Django admin pages for operators, read-only: allocations are changed through services."""

from django.contrib import admin

from allocations.models import (
    Allocation,
    AppliedObject,
    ClusterStore,
    LeaseExcess,
    MirrorObject,
    Transition,
    UsageChange,
    WatchEpoch,
    WatchState,
)
from portal.core.admin import ReadOnlyAdmin


class Timeline(admin.TabularInline):
    """The transitions of an allocation, oldest first, read-only."""

    model = Transition
    fields = ("at", "type", "from_phase", "to_phase", "reason", "message", "actor", "evidence")
    readonly_fields = fields
    ordering = ("id",)
    extra = 0
    can_delete = False
    verbose_name_plural = "timeline"

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Allocation)
class AllocationAdmin(ReadOnlyAdmin):
    list_display = (
        *("name", "project", "offering", "count", "requested_by"),
        *("phase", "reason", "outcome", "phase_since", "hours", "ends_at", "created_at"),
    )
    list_filter = ("phase", "outcome", "offering__flavor", "project__team", "mode", "recovered")
    list_select_related = ("project", "offering", "requested_by")
    search_fields = ("id", "name", "purpose", "project__slug", "requested_by__username")
    date_hierarchy = "created_at"
    inlines = (Timeline,)


@admin.register(Transition)
class TransitionAdmin(ReadOnlyAdmin):
    list_display = ("at", "allocation", "type", "from_phase", "to_phase", "reason", "actor", "recorded_at")
    list_filter = ("type", "to_phase", "reason")
    list_select_related = ("allocation",)
    search_fields = ("allocation__id", "allocation__name", "actor", "message")
    date_hierarchy = "recorded_at"


@admin.register(MirrorObject)
class MirrorObjectAdmin(ReadOnlyAdmin):
    list_display = ("kind", "namespace", "name", "allocation", "resource_version", "deleting", "seen_at")
    list_filter = ("kind", "deleting")
    search_fields = ("name", "namespace", "allocation", "uid")


@admin.register(WatchState)
class WatchStateAdmin(ReadOnlyAdmin):
    list_display = ("kind", "resource_version", "synced_at")


@admin.register(UsageChange)
class UsageChangeAdmin(ReadOnlyAdmin):
    list_display = ("node", "due_at", "changes")
    search_fields = ("node",)


@admin.register(WatchEpoch)
class WatchEpochAdmin(ReadOnlyAdmin):
    list_display = ("number",)


@admin.register(ClusterStore)
class ClusterStoreAdmin(ReadOnlyAdmin):
    list_display = ("size_bytes", "read_at")


@admin.register(AppliedObject)
class AppliedObjectAdmin(ReadOnlyAdmin):
    list_display = ("target", "kind", "namespace", "name", "resource_version", "applied_at")
    list_filter = ("kind",)
    search_fields = ("target", "name", "namespace", "uid")
    date_hierarchy = "applied_at"


@admin.register(LeaseExcess)
class LeaseExcessAdmin(ReadOnlyAdmin):
    list_display = (
        *("seen_at", "namespace", "holder_kind", "name", "resource", "used", "reserved"),
        *("confirmed_at", "actions", "over_at"),
    )
    list_filter = ("holder_kind", "namespace")
    search_fields = ("holder", "name", "namespace", "message")
    date_hierarchy = "seen_at"
