from django.contrib import admin

from portal.core.admin import ReadOnlyAdmin
from portal.events.models import Event


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("at", "kind", "actor", "subject", "project", "team", "cluster")
    list_filter = ("scope", "kind", "cluster")
    search_fields = ("subject", "actor")
