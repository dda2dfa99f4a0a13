from django.contrib import admin

from portal.core.admin import ReadOnlyAdmin
from portal.core.models import IdempotentReply


@admin.register(IdempotentReply)
class IdempotentReplyAdmin(ReadOnlyAdmin):
    list_display = ("route", "key", "user", "status", "created_at")
    search_fields = ("key", "user__username")
