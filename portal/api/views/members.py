"""Members of the teams the caller sees; leads change and take the roles of their own."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import etag
from portal.api.http.auth import LeadScope, person
from portal.api.http.pagination import page_as, page_of
from portal.api.http.strict import Body, Text, read, word
from portal.api.views.structure import IF_MATCH
from portal.core.errors import NotVisible
from portal.tenants import access
from portal.tenants import members as tenants
from portal.tenants.models import Membership, Role


class MemberOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    username = serializers.CharField(source="user.username")
    active = serializers.BooleanField(source="user.is_active", help_text="Who is not active can do nothing.")

    class Meta:
        model = Membership
        fields = ("team", "username", "role", "active")


class MemberChange(Body):
    role = serializers.ChoiceField(Role.choices)


class NewMember(MemberChange):
    team = Text(max_length=40)
    username = Text(max_length=150)


@extend_schema(methods=["GET"], operation_id="members_list", responses=page_of(MemberOut))
@extend_schema(methods=["POST"], request=NewMember, responses={201: MemberOut})
@api_view(["GET", "POST"])
@permission_classes([LeadScope])
def members(request: Request) -> Response:
    """Members of the teams the caller sees; `?team=` keeps those of one. POST adds one uninvited (operators)."""
    user = person(request)
    if request.method == "GET":
        rows = Membership.objects.filter(team__in=access.visible_teams(user)).select_related("team", "user")
        team = word(request, "team")
        return page_as(
            request, rows.filter(team__slug=team) if team else rows, MemberOut, "team__slug", "user__username"
        )
    values = read(NewMember, request)
    return _out(tenants.add(user, access.team_for(user, values["team"]), values["username"], values["role"]), 201)


@extend_schema(methods=["GET"], responses=MemberOut)
@extend_schema(methods=["PUT"], request=MemberChange, responses=MemberOut, parameters=IF_MATCH)
@extend_schema(methods=["DELETE"], responses={204: None})
@api_view(["GET", "PUT", "DELETE"])
@permission_classes([LeadScope])
def member(request: Request, team: str, username: str) -> HttpResponse:
    """One member, with its ETag. PUT changes the role, DELETE takes the person out of the team (leads)."""
    user, of = person(request), access.team_for(person(request), team)
    if request.method == "DELETE":
        tenants.remove(user, of, username)
        return Response(status=204)
    if request.method == "PUT":
        role = read(MemberChange, request)["role"]
        return _out(tenants.set_role(user, of, username, role, etag.lock(request, _version)))
    row = tenants.member(of, username)
    if row is None:
        raise NotVisible(f"The member {username} of {team}", hint="GET /members lists them.")
    return _out(row)


def _version(row: Membership) -> str:
    return etag.version(row.role)


def _out(row: Membership, status: int = 200) -> Response:
    return Response(MemberOut(row).data, status=status, headers={"ETag": etag.of(_version(row))})
