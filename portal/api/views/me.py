"""The caller's roles, projects and tokens."""

from typing import Any

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import auth
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Body, Choice, List, Text, Timestamp, query_value, read
from portal.api.schemas.problem_output import refusals
from portal.core import clock
from portal.tenants import access, people, services
from portal.tenants import tokens as tenant_tokens
from portal.tenants.models import ApiToken, Membership, PlatformRole, Role, Scope

ROLES = [*Role.values, *filter(None, PlatformRole.values)]
OF_USER = OpenApiParameter("user", OpenApiTypes.STR, description="Username: the tokens of that person (operators).")
STATES = [state.value for state in tenant_tokens.State]


class TeamRoleOut(serializers.Serializer):
    slug = serializers.CharField()
    role = serializers.ChoiceField(ROLES, help_text="operator or auditor without a membership.")


class OwnProjectOut(serializers.Serializer):
    slug = serializers.CharField()
    team = serializers.CharField(source="team.slug")
    namespace = serializers.CharField()


class MeOut(serializers.Serializer):
    username = serializers.CharField()
    platform_role = serializers.ChoiceField(list(filter(None, PlatformRole.values)), allow_blank=True)
    teams = TeamRoleOut(many=True)
    projects = OwnProjectOut(many=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    token_expires_at = serializers.DateTimeField(allow_null=True, help_text="Null in a browser's session.")


class TokenRequest(Body):
    name = Text(max_length=100)
    scopes = List(child=Choice(Scope.choices), allow_empty=False)
    expires_at = Timestamp(
        required=False,
        help_text="At most a year ahead, and not after the request's own token expires. Default: 90 days or that.",
    )


class TokenOut(serializers.ModelSerializer):
    user = serializers.CharField(source="user.username")
    state = serializers.SerializerMethodField(help_text="Whether it is accepted.")

    @extend_schema_field(serializers.ChoiceField(STATES))
    def get_state(self, row: ApiToken) -> str:
        return tenant_tokens.state(row, clock.now()).value

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "id",
            "user",
            "name",
            "prefix",
            "scopes",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
            "state",
        )


class NewTokenOut(TokenOut):
    token = serializers.CharField(help_text="The secret. Shown only here.")

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "token")


@extend_schema(responses=MeOut)
@api_view(["GET"])
def me(request: Request) -> Response:
    """Return the caller with teams, projects, and the scopes of the token."""
    user = current_user(request)
    role_in = dict(Membership.objects.filter(user=user).values_list("team__slug", "role"))
    data = {
        "username": user.username,
        "platform_role": user.platform_role,
        "teams": [
            {"slug": slug, "role": role_in.get(slug, user.platform_role)}
            for slug in access.visible_teams(user).values_list("slug", flat=True)
        ],
        "projects": access.visible_projects(user).filter(archived_at=None),
        "scopes": auth.scopes(request),
        "token_expires_at": auth.token_expires_at(request),
    }
    return Response(MeOut(data).data)


@extend_schema(methods=["GET"], parameters=[OF_USER], responses={200: page_schema(TokenOut), **refusals("not_found")})
@extend_schema(
    methods=["POST"],
    summary="Create a token",
    request=TokenRequest,
    responses={201: NewTokenOut, **refusals("outlives_token")},
)
@api_view(["GET", "POST"])
def tokens(request: Request) -> Response:
    """List the caller's tokens, or for operators those of `user`. POST creates one; if called with a token, it has no
    more scopes and ends no later than that one.
    """
    if request.method == "GET":
        user, name = current_user(request), query_value(request, "user")
        rows = people.tokens_of(user, name) if name else ApiToken.objects.filter(user=user)
        return page(request, rows.select_related("user"), _render, "-created_at", "-id")
    values = read(TokenRequest, request)
    row, secret = services.issue_token(
        current_user(request),
        current_user(request),
        values["name"],
        values["scopes"],
        expires_at=values.get("expires_at"),
        parent=request.auth if isinstance(request.auth, ApiToken) else None,
    )
    return Response({**TokenOut(row).data, "token": secret}, status=201, headers={"Cache-Control": "no-store"})


@extend_schema(methods=["GET"], summary="Return a token", responses=TokenOut)
@extend_schema(methods=["DELETE"], summary="Revoke a token", responses={204: None})
@api_view(["GET", "DELETE"])
def token(request: Request, token_id: int) -> HttpResponse:
    """Return one of the caller's tokens, or for operators anybody's. DELETE revokes it, and those that were created
    with it; of others it needs scope admin.
    """
    user = current_user(request)
    row = people.token(user, token_id)
    if request.method == "GET":
        return Response(TokenOut(row).data)
    if row.user != user:
        auth.require_scope(request, Scope.ADMIN)
    services.revoke_token(user, row.user, row.pk)
    return Response(status=204)


def _render(rows: list[ApiToken]) -> list[dict[str, Any]]:
    return [dict(TokenOut(row).data) for row in rows]


urlpatterns = [
    path("me", me),
    path("tokens", tokens),
    path("tokens/<int:token_id>", token),
]
