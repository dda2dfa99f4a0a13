"""Invitations: leads create and withdraw those of their teams; everyone answers their own."""

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import LeadScope, current_user
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Body, Choice, Text, query_value, read
from portal.api.schemas.problem_output import refusals
from portal.api.views.members import MemberOut
from portal.api.views.structure import TEAM
from portal.tenants import access
from portal.tenants import invitations as tenants
from portal.tenants.models import Invitation, Role


class InvitationOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    invited_by = serializers.CharField(source="invited_by.username")

    class Meta:
        model = Invitation
        fields = ("id", "team", "invitee", "role", "invited_by", "created_at", "expires_at")


INVITATIONS = page_schema(InvitationOut)


class NewInvitation(Body):
    team = Text(max_length=40)
    invitee = Text(max_length=254, help_text="Username or e-mail address.")
    role = Choice(Role.choices)


@extend_schema(methods=["GET"], parameters=[TEAM], responses=INVITATIONS)
@extend_schema(
    methods=["POST"],
    summary="Invite a person to a team",
    parameters=[KEY],
    request=NewInvitation,
    responses={201: InvitationOut, **refusals("not_found", "already_member", "too_many_invitations")},
)
@api_view(["GET", "POST"])
@permission_classes([LeadScope])
@idempotent(NewInvitation)
def invitations(request: Request) -> Response:
    """List the unanswered invitations of the teams the caller leads; `?team=` filters by team. POST invites a person.

    The answer is the same whether or not a user of that name exists.
    """
    user = current_user(request)
    if request.method == "GET":
        rows, team = tenants.pending(user), query_value(request, "team")
        return serialized_page(
            request, rows.filter(team__slug=team) if team else rows, InvitationOut, "team__slug", "invitee"
        )
    values = read(NewInvitation, request)
    row = tenants.invite(user, access.team_for(user, values["team"]), values["invitee"], values["role"])
    return Response(InvitationOut(row).data, status=201)


@extend_schema(responses={204: None})
@api_view(["DELETE"])
@permission_classes([LeadScope])
def invitation(request: Request, invitation_id: int) -> HttpResponse:
    """Withdraw an invitation (leads)."""
    tenants.withdraw(current_user(request), invitation_id)
    return Response(status=204)


@extend_schema(responses=INVITATIONS)
@api_view(["GET"])
def received(request: Request) -> Response:
    """List the invitations of the caller, by username or e-mail address."""
    return serialized_page(request, tenants.received(current_user(request)), InvitationOut, "team__slug", "invitee")


@extend_schema(request=None, responses={200: MemberOut, **refusals("invitation_void")})
@api_view(["POST"])
def accept(request: Request, invitation_id: int) -> Response:
    """Accept the invitation; a member of the team keeps the current role."""
    return Response(MemberOut(tenants.accept(current_user(request), invitation_id)).data)


@extend_schema(request=None, responses={204: None})
@api_view(["POST"])
def decline(request: Request, invitation_id: int) -> HttpResponse:
    """Decline the invitation."""
    tenants.decline(current_user(request), invitation_id)
    return Response(status=204)


urlpatterns = [
    path("invitations", invitations),
    path("invitations/<int:invitation_id>", invitation),
    path("me/invitations", received),
    path("me/invitations/<int:invitation_id>/accept", accept),
    path("me/invitations/<int:invitation_id>/decline", decline),
]
