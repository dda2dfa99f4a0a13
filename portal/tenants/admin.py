"""The operators' forms, which write through `portal.tenants.services` as everything does."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from portal.core.admin import ReadOnlyAdmin
from portal.tenants import services
from portal.tenants.models import ApiToken, Department, Membership, Project, Team, User


@admin.register(User)
class PersonAdmin(UserAdmin):
    list_display = ("username", "email", "platform_role", "is_active")
    list_filter = ("platform_role", "is_active")
    fieldsets = (*(UserAdmin.fieldsets or ()), ("Platform", {"fields": ("platform_role",)}))

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm, change: bool) -> None:
        services.save_person(obj, form.changed_data, actor=request.user.get_username())


class StructureAdmin(admin.ModelAdmin):
    """Things whose slug objects in the cluster carry: so it stays, and nothing is deleted here."""

    fixed: tuple[str, ...] = ("slug",)
    search_fields = ("slug", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return self.fixed if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Department | Team | Project, form: ModelForm, change: bool) -> None:
        services.save_structure(obj, form.changed_data, actor=request.user.get_username())


@admin.register(Department)
class DepartmentAdmin(StructureAdmin):
    list_display = ("slug", "name")


@admin.register(Team)
class TeamAdmin(StructureAdmin):
    list_display = ("slug", "name", "department")
    list_filter = ("department",)


@admin.register(Project)
class ProjectAdmin(StructureAdmin):
    fixed = ("slug", "namespace", "team")
    list_display = ("slug", "name", "team", "namespace", "pod_security", "egress", "admin_access", "archived_at")
    exclude = ("archived_at",)
    list_filter = ("team", "pod_security", "egress")


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
