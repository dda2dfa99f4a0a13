from django.contrib import admin

from portal.core.admin import ReadOnlyAdmin
from quotas.metering.models import UsageInterval


@admin.register(UsageInterval)
class UsageIntervalAdmin(ReadOnlyAdmin):
    list_display = ("slot", "holder_id", "offering", "count", "unused", "start", "end", "team", "project", "member")
    list_filter = ("team", "flavor", "kind", "unused", "estimated_end")
    search_fields = ("holder_id", "slot", "device_uuid")
