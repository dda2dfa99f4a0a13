"""Django admin pages of limits, read-only, and of queue policies, which have no other page to change them."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse

from portal.core.admin import ReadOnlyAdmin
from portal.core.errors import Invalid
from quotas.limits import services
from quotas.limits.models import Limit, LimitUse, QueuePolicy, QuotaChange, WeightChange
from quotas.limits.projection import DEFAULT_POLICY, Policy


@admin.register(Limit)
class LimitAdmin(ReadOnlyAdmin):
    list_display = ("holder_kind", "holder", "scope", "nominal", "borrowing", "lending", "units_used")
    list_filter = ("team", "department", "pool")
    list_select_related = ("department", "team", "project", "user", "pool", "offering", "flavor")

    def view_on_site(self, obj: Limit) -> str:
        return reverse("limits")


@admin.register(LimitUse)
class LimitUseAdmin(ReadOnlyAdmin):
    list_display = ("limit", "allocation", "parts", "granted_seq", "released_seq")
    search_fields = ("allocation",)
    list_select_related = ("limit",)


class QueuePolicyForm(ModelForm):
    """Validates like the service, and refuses to add what applies without a policy."""

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        holder = values.get("team") or values.get("department") or self.instance.team or self.instance.department
        if self.errors or holder is None:
            return values
        policy = Policy(values["weight"], values["reclaim"], values["within"])
        try:
            services.check_policy(holder, policy)
        except Invalid as problem:
            raise ValidationError(problem.errors) from problem
        if self.instance.pk is None and policy == DEFAULT_POLICY:
            raise ValidationError("These are the defaults, which apply without a policy.")
        return values


@admin.register(QueuePolicy)
class QueuePolicyAdmin(admin.ModelAdmin):
    form = QueuePolicyForm
    list_display = ("department", "team", "weight", "reclaim", "within")
    list_select_related = ("department", "team")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return ("department", "team") if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: QueuePolicy, form: ModelForm, change: bool) -> None:
        holder = obj.team or obj.department
        if holder is not None:
            policy = Policy(obj.weight, obj.reclaim, obj.within)
            obj.pk = services.set_policy(request.user, holder, vars(policy)).pk


@admin.register(QuotaChange)
class QuotaChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "department", "team", "pool", "nominal", "borrowing", "lending")
    list_filter = ("team", "department", "pool")
    list_select_related = ("department", "team", "pool")
    date_hierarchy = "at"


@admin.register(WeightChange)
class WeightChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "department", "team", "weight")
    list_filter = ("team", "department")
    list_select_related = ("department", "team")
    date_hierarchy = "at"
