"""Departments, teams, projects and members, as far as the caller sees them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.auth import person
from portal.api.pagination import page_as, page_of
from portal.tenants import access
from portal.tenants.models import Department, Membership, Project, Team


class DepartmentOut(serializers.ModelSerializer):
    class Meta:
        model = Department
        fields = ("slug", "name")


class TeamOut(serializers.ModelSerializer):
    department = serializers.CharField(source="department.slug")

    class Meta:
        model = Team
        fields = ("slug", "name", "department")


class ProjectOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    department = serializers.CharField(source="team.department.slug")

    class Meta:
        model = Project
        fields = ("slug", "name", "team", "department", "namespace", "pod_security", "egress", "archived_at")


class MemberOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    username = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ("team", "username", "role")


@extend_schema(responses=page_of(DepartmentOut))
@api_view(["GET"])
def departments(request: Request) -> Response:
    """Departments of the teams the caller sees."""
    rows = Department.objects.filter(teams__in=access.visible_teams(person(request))).distinct()
    return page_as(request, rows, DepartmentOut, "slug")


@extend_schema(responses=page_of(TeamOut))
@api_view(["GET"])
def teams(request: Request) -> Response:
    """Teams the caller sees."""
    return page_as(request, access.visible_teams(person(request)).select_related("department"), TeamOut, "slug")


@extend_schema(responses=page_of(ProjectOut))
@api_view(["GET"])
def projects(request: Request) -> Response:
    """Projects the caller sees; `?team=` keeps those of one team."""
    return page_as(request, _of_team(request, access.visible_projects(person(request))), ProjectOut, "slug")


@extend_schema(responses=page_of(MemberOut))
@api_view(["GET"])
def members(request: Request) -> Response:
    """Members of the teams the caller sees; `?team=` keeps those of one team."""
    rows = Membership.objects.filter(team__in=access.visible_teams(person(request))).select_related("team", "user")
    return page_as(request, _of_team(request, rows), MemberOut, "team__slug", "user__username")


def _of_team(request: Request, rows: QuerySet[Any]) -> QuerySet[Any]:
    team = request.query_params.get("team")
    return rows.filter(team__slug=team) if team else rows
