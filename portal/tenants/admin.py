"""Django admin pages for operators; they write through `portal.tenants.services`."""

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

from portal.core.admin import ReadOnlyAdmin
from portal.core.errors import Invalid, Refused
from portal.tenants import services, structure
from portal.tenants.models import ApiToken, Department, HierarchyChange, Invitation, Membership, Project, Team, User

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
                services.password_was_set(User.objects.get(pk=id), actor=request.user.get_username())
        return response

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm, change: bool) -> None:
        services.save_person(obj, form.changed_data, actor=request.user.get_username())


class StructureAdmin(admin.ModelAdmin):
    """Admin of rows whose slugs objects in the cluster carry: slugs are fixed, and nothing is deleted here."""

    fixed: tuple[str, ...] = ("slug",)
    search_fields = ("slug", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return (*self.readonly_fields, *(self.fixed if obj else ()))

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class DepartmentForm(ModelForm):
    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        try:
            structure.check_place(self.instance, values.get("parent"))
        except Invalid as problem:
            raise ValidationError(problem.errors) from problem
        return values


@admin.register(Department)
class DepartmentAdmin(StructureAdmin):
    """Departments. Moving one recounts limits, so it is done on the portal's page /tenants."""

    form = DepartmentForm
    fixed = ("slug", "parent")
    list_display = ("slug", "name", "parent")

    def save_model(self, request: HttpRequest, obj: Department, form: ModelForm, change: bool) -> None:
        actor = request.user.get_username()
        if not change:
            obj.pk = services.create_department(obj.slug, obj.name, parent=obj.parent, actor=actor).pk
            return
        structure.rename(Department.objects.get(pk=obj.pk), obj.name, actor=actor)


@admin.register(Team)
class TeamAdmin(StructureAdmin):
    """Teams. Moving one recounts limits, so it is done on the portal's page /tenants."""

    fixed = ("slug", "department")
    list_display = ("slug", "name", "department")
    list_filter = ("department",)

    def save_model(self, request: HttpRequest, obj: Team, form: ModelForm, change: bool) -> None:
        actor = request.user.get_username()
        if not change:
            obj.pk = services.create_team(obj.department, obj.slug, obj.name, actor=actor).pk
            return
        structure.rename(Team.objects.get(pk=obj.pk), obj.name, actor=actor)


@admin.register(Project)
class ProjectAdmin(StructureAdmin):
    """Projects. Moving, adopting and archiving check what runs in them, so they are done on the portal's page
    /tenants.
    """

    fixed = ("slug", "namespace", "team")
    list_display = (
        "slug",
        "name",
        "team",
        "cluster",
        "namespace",
        "pod_security",
        "egress",
        "exposure",
        "admin_access",
        "archived_at",
    )
    readonly_fields = ("cluster", "object_limits", "config_size_kib")  # their bound is checked on the portal's own page
    exclude = ("archived_at", "adopted", "guard")
    list_filter = ("team", "pod_security", "egress")

    def save_model(self, request: HttpRequest, obj: Project, form: ModelForm, change: bool) -> None:
        actor = request.user.get_username()
        allows: dict[str, Any] = {
            name: getattr(obj, name) for name in ("pod_security", "egress", "exposure", "admin_access")
        }
        if not change:
            made = services.create_project(obj.team, obj.slug, obj.name, namespace=obj.namespace, actor=actor, **allows)
            obj.pk = made.pk
            return
        row = Project.objects.get(pk=obj.pk)
        structure.rename(row, obj.name, actor=actor)
        structure.configure_project(row, actor=actor, **allows)


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):
    list_display = ("user", "team", "role")
    list_filter = ("team", "role")
    autocomplete_fields = ("user", "team")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return ("user", "team") if obj else ()

    def save_model(self, request: HttpRequest, obj: Membership, form: ModelForm, change: bool) -> None:
        obj.pk = services.add_member(obj.team, obj.user, obj.role, actor=request.user.get_username()).pk

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        services.remove_member(obj.team, obj.user, actor=request.user.get_username())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for membership in queryset.select_related("team", "user"):
            self.delete_model(request, membership)


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
            services.revoke_token(token.user, token.pk, actor=request.user.get_username())
