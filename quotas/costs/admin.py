from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from quotas.costs import services
from quotas.costs.models import Price


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):
    """Prices are added, and never changed or deleted."""

    list_display = ("flavor", "per_gpu_hour", "currency", "valid_from", "source")
    list_filter = ("flavor",)
    list_select_related = ("flavor",)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Price, form: ModelForm, change: bool) -> None:
        price = services.set_price(
            request.user.get_username(),
            obj.flavor,
            obj.per_gpu_hour,
            obj.currency,
            obj.valid_from,
            obj.source,
        )
        obj.pk = price.pk
