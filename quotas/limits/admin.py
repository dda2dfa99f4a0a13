from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from quotas.limits import services
from quotas.limits.models import Limit


@admin.register(Limit)
class LimitAdmin(admin.ModelAdmin):
    list_display = ("team", "pool", "nominal")
    list_filter = ("team", "pool")
    list_select_related = ("team", "pool")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return ("team", "pool") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Limit, form: ModelForm, change: bool) -> None:
        saved = services.set_limit(request.user.get_username(), obj.team, obj.pool, obj.nominal)
        obj.pk = saved.pk
