"""Operators look here; allocations change through their services only."""

from django.contrib import admin

from allocations.models import Allocation, AppliedObject, MirrorObject, Transition, WatchState
from portal.core.admin import ReadOnlyAdmin


@admin.register(Allocation)
class AllocationAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "project", "offering", "count", "requested_by", "phase", "reason", "created_at")
    list_filter = ("phase", "mode", "project__team")
    list_select_related = ("project", "offering", "requested_by")
    search_fields = ("id", "name", "project__slug", "requested_by__username")


@admin.register(Transition)
class TransitionAdmin(ReadOnlyAdmin):
    list_display = ("recorded_at", "allocation", "type", "from_phase", "to_phase", "reason", "actor")
    list_select_related = ("allocation",)
    search_fields = ("allocation__id", "allocation__name", "actor")


@admin.register(MirrorObject)
class MirrorObjectAdmin(ReadOnlyAdmin):
    list_display = ("kind", "namespace", "name", "resource_version", "deleting", "seen_at")
    list_filter = ("kind",)
    search_fields = ("name", "namespace")


@admin.register(WatchState)
class WatchStateAdmin(ReadOnlyAdmin):
    list_display = ("kind", "resource_version", "synced_at")


@admin.register(AppliedObject)
class AppliedObjectAdmin(ReadOnlyAdmin):
    list_display = ("target", "kind", "namespace", "name", "resource_version", "applied_at")
    list_filter = ("kind",)
    search_fields = ("target", "name", "namespace")
