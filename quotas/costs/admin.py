from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest

from portal.core import clock
from portal.core.errors import Problem
from quotas.costs import services
from quotas.costs.models import Price

TO_FILL_IN_THE_FORM = timedelta(minutes=10)


class PriceForm(forms.ModelForm):
    """Validates like the service, with errors beside the fields."""

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if {"flavor", "per_gpu_hour", "currency", "valid_from"} <= values.keys():
            try:
                services.check_price(values["flavor"], values["per_gpu_hour"], values["currency"], values["valid_from"])
            except Problem as problem:
                errors = problem.errors or {NON_FIELD_ERRORS: [f"{problem.detail} {problem.hint}"]}
                for field, messages in errors.items():
                    self.add_error(field, messages)
        return values


@admin.register(Price)
class PriceAdmin(admin.ModelAdmin):
    """Prices are added, and never changed or deleted."""

    form = PriceForm
    list_display = ("flavor", "per_gpu_hour", "currency", "valid_from", "source")
    list_filter = ("flavor",)
    list_select_related = ("flavor",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"valid_from": clock.now() + TO_FILL_IN_THE_FORM}

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Price, form: forms.ModelForm, change: bool) -> None:
        obj.pk = services.set_price(
            request.user.get_username(), obj.flavor, obj.per_gpu_hour, obj.currency, obj.valid_from, obj.source
        ).pk
