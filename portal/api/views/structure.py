"""Departments and teams that the caller may see; operators create, rename and move them."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.projects import editable, organization
from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, current_user
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Body, Text, read
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid
from portal.core.quotation import named
from portal.tenants import access, services
from portal.tenants.models import Department, Team, User

SLUG_HELP = "Lower-case letters, digits and hyphens. Cannot be changed later."
PARENT_HELP = "Slug of the department above; null: none."
TEAM = OpenApiParameter("team", OpenApiTypes.STR, description="Slug.")


class DepartmentOut(serializers.ModelSerializer):
    parent = serializers.CharField(source="parent.slug", allow_null=True, default=None)  # type: ignore[assignment]

    class Meta:
        model = Department
        fields = ("slug", "name", "parent")


class TeamOut(serializers.ModelSerializer):
    department = serializers.CharField(source="department.slug")

    class Meta:
        model = Team
        fields = ("slug", "name", "department")


class NewDepartment(Body):
    slug = Text(max_length=40, help_text=SLUG_HELP)
    name = Text(max_length=100)
    parent = Text(required=False, allow_null=True, max_length=40, help_text=PARENT_HELP)  # type: ignore[assignment]


class DepartmentChange(Update):
    """A department as GET gives it, or a part of it; omitted fields stay unchanged."""

    shown = DepartmentOut
    name = Text(required=False, max_length=100)
    parent = Text(required=False, allow_null=True, max_length=40, help_text=PARENT_HELP)  # type: ignore[assignment]


class NewTeam(Body):
    slug = Text(max_length=40, help_text=SLUG_HELP)
    name = Text(max_length=100)
    department = Text(max_length=40)


class TeamChange(Update):
    """A team as GET gives it, or a part of it; omitted fields stay unchanged."""

    shown = TeamOut
    name = Text(required=False, max_length=100)
    department = Text(required=False, max_length=40, help_text="With which the team lends from now on.")


@extend_schema(methods=["GET"], responses=page_schema(DepartmentOut))
@extend_schema(
    methods=["POST"],
    summary="Create a department",
    parameters=[KEY],
    request=NewDepartment,
    responses={201: DepartmentOut, **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewDepartment)
def departments(request: Request) -> Response:
    """List the departments of the teams the caller may see, and those above them. POST creates one (operators)."""
    if request.method == "GET":
        rows = access.visible_departments(current_user(request)).select_related("parent")
        return serialized_page(request, rows, DepartmentOut, "slug")
    user, values = current_user(request), read(NewDepartment, request)
    parent = _department(user, values.get("parent"), "parent")
    made = services.create_department(user, values["slug"], values["name"], parent)
    return _department_out(made, 201)


@extend_schema(methods=["GET"], responses=DepartmentOut)
@described("Rename or move a department", DepartmentChange, DepartmentOut)
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def department(request: Request, slug: str) -> Response:
    """Return one department, with its ETag. PUT and PATCH rename or move it (operators) and need If-Match."""
    user = current_user(request)
    row = access.department_for(user, slug)
    if request.method in METHODS:
        changes = edits.changes(DepartmentChange, request, DepartmentOut(row).data)
        if "parent" in changes:
            changes["parent"] = _department(user, changes["parent"], "parent")
        row = organization.change_department(user, row, changes, etag.lock(request, _department_version))
    return _department_out(row)


@extend_schema(methods=["GET"], responses=page_schema(TeamOut))
@extend_schema(
    methods=["POST"],
    summary="Create a team",
    parameters=[KEY],
    request=NewTeam,
    responses={201: TeamOut, **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewTeam)
def teams(request: Request) -> Response:
    """List the teams the caller may see. POST creates one (operators)."""
    if request.method == "GET":
        return serialized_page(
            request, access.visible_teams(current_user(request)).select_related("department"), TeamOut, "slug"
        )
    user, values = current_user(request), read(NewTeam, request)
    within = _department(user, values["department"], "department")
    assert within is not None
    made = services.create_team(user, within, values["slug"], values["name"])
    return _team_out(made, 201)


@extend_schema(methods=["GET"], responses=TeamOut)
@described("Rename or move a team", TeamChange, TeamOut)
@extend_schema(methods=["DELETE"], summary="Delete a team", responses={204: None, **refusals("wrong_phase")})
@api_view(["GET", *METHODS, "DELETE"])
@permission_classes([AdminScope])
def team(request: Request, slug: str) -> Response:
    """Return one team, with its ETag. PUT and PATCH rename it or move it to another department
    (operators). DELETE deletes it, if it never had a project or a quota.
    """
    user = current_user(request)
    row = access.team_for(user, slug)
    if request.method == "DELETE":
        organization.delete_team(user, row)
        return Response(status=204)
    if request.method in METHODS:
        changes = edits.changes(TeamChange, request, TeamOut(row).data)
        if "department" in changes:
            changes["department"] = _department(user, changes["department"], "department")
        row = organization.change_team(user, row, changes, etag.lock(request, _team_version))
    return _team_out(row)


def _department(user: User, slug: str | None, field: str) -> Department | None:
    """Return the department, for operators."""
    if slug is None:
        return None
    rows = editable.departments(user)
    found = rows.filter(slug=slug).first() if "\x00" not in slug else None
    if found is None:
        raise Invalid({field: [f"There is no department {named(slug)}. GET /departments lists them."]})
    return found


def _department_version(row: Department) -> str:
    return etag.version(row.name, row.parent_id)


def _team_version(row: Team) -> str:
    return etag.version(row.name, row.department_id)


def _department_out(row: Department, status: int = 200) -> Response:
    return _tagged(DepartmentOut(row).data, _department_version(row), status)


def _team_out(row: Team, status: int = 200) -> Response:
    return _tagged(TeamOut(row).data, _team_version(row), status)


def _tagged(data: Any, version: str, status: int) -> Response:
    return Response(data, status=status, headers={"ETag": etag.entity_tag(version)})


urlpatterns = [
    path("departments", departments),
    path("departments/<str:slug>", department),
    path("teams", teams),
    path("teams/<str:slug>", team),
]
