from django.contrib import admin

from portal.api.models import IdempotentReply
from portal.core.admin import ReadOnlyAdmin


@admin.register(IdempotentReply)
class IdempotentReplyAdmin(ReadOnlyAdmin):
    list_display = ("route", "key", "user", "status", "created_at")
    search_fields = ("key", "user__username")
