from django.contrib import admin

from portal.core.admin import ReadOnlyAdmin
from quotas.metering.models import (
    AccountHour,
    BalanceProof,
    CapacityInterval,
    ClockSkew,
    Correction,
    DayTotal,
    DirtyHour,
    ForeignUse,
    HoldUse,
    HourTotal,
    MonthTotal,
    OwnedIdleDay,
    OwnedIdleHour,
    OwnedIdleMonth,
    RecorderOutage,
    RolledUpHour,
    UsageInterval,
)


@admin.register(UsageInterval)
class UsageIntervalAdmin(ReadOnlyAdmin):
    list_display = ("slot", "holder_id", "offering", "count", "unused", "start", "end", "team", "project", "member")
    list_filter = ("team", "flavor", "kind", "unused", "overtime", "uncharged", "estimated_end")
    search_fields = ("holder_id", "slot", "device_uuid")


@admin.register(CapacityInterval)
class CapacityIntervalAdmin(ReadOnlyAdmin):
    list_display = ("node", "name", "count", "available", "state", "flavor", "offered", "start", "end")
    list_filter = ("cluster", "flavor", "kind", "state", "offered", "inferred", "estimated_start", "estimated_end")
    search_fields = ("node", "name", "uuid")


@admin.register(ForeignUse)
class ForeignUseAdmin(ReadOnlyAdmin):
    list_display = ("node", "name", "count", "consumer_kind", "namespace", "consumer", "owner_kind", "start", "end")
    list_filter = ("cluster", "kind", "consumer_kind", "owner_kind", "estimated_start", "estimated_end")
    search_fields = ("node", "namespace", "consumer")


@admin.register(HoldUse)
class HoldUseAdmin(ReadOnlyAdmin):
    list_display = ("holder_id", "cluster", "start", "end", "estimated_start", "estimated_end")
    list_filter = ("cluster", "estimated_start", "estimated_end")
    search_fields = ("holder_id",)


@admin.register(Correction)
class CorrectionAdmin(ReadOnlyAdmin):
    list_display = ("usage", "foreign_use", "former_end", "end", "cause", "recorded_at")
    list_filter = ("cause",)
    date_hierarchy = "recorded_at"


@admin.register(RecorderOutage)
class RecorderOutageAdmin(ReadOnlyAdmin):
    list_display = ("cluster", "kind", "start", "end", "recorded_at")
    list_filter = ("cluster", "kind")
    date_hierarchy = "start"


@admin.register(ClockSkew)
class ClockSkewAdmin(ReadOnlyAdmin):
    list_display = ("cluster", "seconds", "error", "measured_at")


@admin.register(BalanceProof)
class BalanceProofAdmin(ReadOnlyAdmin):
    list_display = ("hour", "cluster", "balanced", "capacity_gpu_hours", "failure_count", "checked_at")
    list_filter = ("cluster", "balanced")
    date_hierarchy = "hour"


@admin.register(AccountHour)
class AccountHourAdmin(ReadOnlyAdmin):
    list_display = ("start", "node", "name", "category", "member", "project", "amount", "denominator", "price")
    list_filter = ("cluster", "flavor", "category", "team")
    search_fields = ("node", "name", "holder_id")


@admin.register(HourTotal, DayTotal, MonthTotal)
class TotalAdmin(ReadOnlyAdmin):
    list_display = ("start", "flavor", "category", "offering", "team", "project", "amount", "denominator", "price")
    list_filter = ("cluster", "flavor", "category", "team")


@admin.register(OwnedIdleHour, OwnedIdleDay, OwnedIdleMonth)
class OwnedIdleAdmin(ReadOnlyAdmin):
    list_display = ("start", "flavor", "department", "team", "amount", "price")
    list_filter = ("cluster", "flavor", "department", "team")


@admin.register(RolledUpHour)
class RolledUpHourAdmin(ReadOnlyAdmin):
    list_display = ("hour", "cluster", "rolled_up_at")
    list_filter = ("cluster",)
    date_hierarchy = "hour"


@admin.register(DirtyHour)
class DirtyHourAdmin(ReadOnlyAdmin):
    list_display = ("hour", "cluster")
    list_filter = ("cluster",)
