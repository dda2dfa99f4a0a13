"""Django admin pages for operators: people and tokens of others are written by `portal.tenants.services`; what has a
page of its own is read-only.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.core.admin import ReadOnlyAdmin
from portal.core.errors import Refused
from portal.tenants import services
from portal.tenants.models import ApiToken, Department, HierarchyChange, Invitation, Membership, Project, Team, User
from portal.tenants.project_options import SETTINGS

# Roles are the portal's own; groups would give rights that `portal.tenants.access` does not know.
admin.site.unregister(Group)


class PersonForm(UserChangeForm):
    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        role, is_active = found.get("platform_role", ""), found.get("is_active", False)
        try:
            services.require_operator_left(
                User(pk=self.instance.pk, username=self.instance.username, platform_role=role, is_active=is_active)
            )
        except Refused as problem:
            raise ValidationError(f"{problem.detail} {problem.hint}") from problem
        return found


@admin.register(User)
class PersonAdmin(UserAdmin):
    form = PersonForm
    list_display = ("username", "email", "platform_role", "is_active")
    list_filter = ("platform_role", "is_active")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Platform", {"fields": ("is_active", "platform_role")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Return False: people who leave are made inactive, since the audit log names them."""
        return False

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Return the answer of Django's form, with an audit entry if it set a password, which it then answers by a
        redirect.
        """
        with transaction.atomic():
            response = super().user_change_password(request, id, form_url)
            if response.status_code == 302:
                services.password_was_set(request.user, User.objects.get(pk=id))
        return response

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm, change: bool) -> None:
        services.save_person(request.user, obj, form.changed_data)


@admin.register(Department)
class DepartmentAdmin(ReadOnlyAdmin):
    list_display = ("slug", "name", "parent")
    list_select_related = ("parent",)
    search_fields = ("slug", "name")

    def view_on_site(self, obj: Department) -> str:
        return reverse("edit-department", args=[obj.slug])


@admin.register(Team)
class TeamAdmin(ReadOnlyAdmin):
    list_display = ("slug", "name", "department")
    list_filter = ("department",)
    list_select_related = ("department",)
    search_fields = ("slug", "name")

    def view_on_site(self, obj: Team) -> str:
        return reverse("edit-team", args=[obj.slug])


@admin.register(Project)
class ProjectAdmin(ReadOnlyAdmin):
    list_display = (
        *("slug", "name", "team", "cluster", "namespace"),
        *(*SETTINGS, "archived_at"),
    )
    list_filter = ("team", "pod_security", "egress")
    list_select_related = ("team", "cluster")
    search_fields = ("slug", "name")

    def view_on_site(self, obj: Project) -> str:
        return reverse("project", args=[obj.slug])


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    list_display = ("user", "team", "role")
    list_filter = ("team", "role")
    list_select_related = ("user", "team")

    def view_on_site(self, obj: Membership) -> str:
        return reverse("team", args=[obj.team.slug])


@admin.register(HierarchyChange)
class HierarchyChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "team", "department", "parent")
    list_filter = ("team", "department")
    list_select_related = ("team", "department", "parent")
    date_hierarchy = "at"


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ("invitee", "team", "role", "invited_by", "expires_at")
    search_fields = ("invitee", "team__slug")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("prefix", "user", "name", "scopes", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("prefix", "user__username", "name")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens", permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset.select_related("user"):
            services.revoke_token(request.user, token.user, token.pk)
