from django.contrib import admin

from portal.clusters.models import Cluster
from portal.core.admin import ReadOnlyAdmin


@admin.register(Cluster)
class ClusterAdmin(ReadOnlyAdmin):
    list_display = ("slug", "name", "server", "created_at")
