"""Members of teams; leads change roles and remove members of their own teams."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import edits, etag
from portal.api.http.auth import LeadScope, current_user
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Body, Choice, Text, query_value, read
from portal.api.schemas.problem_output import refusals
from portal.api.views.structure import TEAM
from portal.core.errors import NotVisible
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants import members as tenants
from portal.tenants.models import Membership, Role


class MemberOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    username = serializers.CharField(source="user.username")
    active = serializers.BooleanField(source="user.is_active", help_text="An inactive person has no access.")

    class Meta:
        model = Membership
        fields = ("team", "username", "role", "active")


class MemberChange(Update):
    """A member as GET gives it, or the role alone."""

    shown = MemberOut
    role = Choice(Role.choices, required=False)


class NewMember(Body):
    role = Choice(Role.choices)
    team = Text(max_length=40)
    username = Text(max_length=150)


@extend_schema(methods=["GET"], parameters=[TEAM], responses=page_schema(MemberOut))
@extend_schema(
    methods=["POST"],
    summary="Add a member",
    parameters=[KEY],
    request=NewMember,
    responses={201: MemberOut, **refusals("not_found", "last_lead")},
)
@api_view(["GET", "POST"])
@permission_classes([LeadScope])
@idempotent(NewMember)
def members(request: Request) -> Response:
    """List members of the teams the caller may see; `?team=` filters by team. POST adds one without an invitation
    (operators).
    """
    user = current_user(request)
    if request.method == "GET":
        rows = tenants.visible(user)
        team = query_value(request, "team")
        return serialized_page(
            request, rows.filter(team__slug=team) if team else rows, MemberOut, "team__slug", "user__username"
        )
    values = read(NewMember, request)
    return _out(tenants.add(user, access.team_for(user, values["team"]), values["username"], values["role"]), 201)


@extend_schema(methods=["GET"], responses=MemberOut)
@described("Change the role of a member", MemberChange, {200: MemberOut, **refusals("last_lead")})
@extend_schema(methods=["DELETE"], summary="Remove a member", responses={204: None, **refusals("last_lead")})
@api_view(["GET", *METHODS, "DELETE"])
@permission_classes([LeadScope])
def member(request: Request, team: str, username: str) -> HttpResponse:
    """Return one member, with its ETag. PUT and PATCH change the role, DELETE removes the member (leads)."""
    user, of = current_user(request), access.team_for(current_user(request), team)
    if request.method == "DELETE":
        tenants.remove(user, of, username)
        return Response(status=204)
    row = tenants.member(of, username)
    if row is None:
        raise NotVisible(f"The member {named(username)} of {named(team)}", hint="GET /members lists them.")
    if request.method in METHODS:
        role = edits.changes(MemberChange, request, MemberOut(row).data).get("role", row.role)
        row = tenants.set_role(user, of, username, role, etag.lock(request, _version))
    return _out(row)


def _version(row: Membership) -> str:
    return etag.version(row.role)


def _out(row: Membership, status: int = 200) -> Response:
    return Response(MemberOut(row).data, status=status, headers={"ETag": etag.entity_tag(_version(row))})


urlpatterns = [
    path("members", members),
    path("members/<str:team>/<str:username>", member),
]
