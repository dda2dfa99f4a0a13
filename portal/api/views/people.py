"""People: platform staff see them; operators create them, deactivate them, and give platform roles."""

from collections.abc import Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, current_user, scopes
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent, stated
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Body, Boolean, Choice, Text, read
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Forbidden
from portal.tenants import people as services
from portal.tenants.models import PlatformRole, Scope, User

ROLE_HELP = "For all teams; empty: none."


class PersonOut(serializers.ModelSerializer):
    email = serializers.CharField(help_text="Empty if there is none.")
    active = serializers.BooleanField(source="is_active", help_text="An inactive person has no access.")

    class Meta:
        model = User
        fields = (
            "username",
            "email",
            "first_name",
            "last_name",
            "platform_role",
            "active",
            "last_login",
            "date_joined",
        )
        extra_kwargs = {"platform_role": {"help_text": ROLE_HELP}}  # noqa: RUF012  # as DRF has it


class NewPerson(Body):
    username = Text(max_length=150, help_text="Cannot be changed later.")
    password = Text(max_length=128, help_text="To sign in with; the person changes it on their page.")
    email = Text(required=False, allow_blank=True, max_length=254)
    platform_role = Choice(PlatformRole.values, default=PlatformRole.NONE.value, help_text=ROLE_HELP)


class PersonChange(Update):
    """A person as GET gives it, or a part of it. When someone last signed in is ignored."""

    shown = PersonOut
    observed = frozenset({"last_login"})
    email = Text(required=False, allow_blank=True, max_length=254)
    first_name = Text(required=False, allow_blank=True, max_length=150)
    last_name = Text(required=False, allow_blank=True, max_length=150)
    platform_role = Choice(PlatformRole.values, required=False, help_text=ROLE_HELP)
    active = Boolean(required=False, source="is_active", help_text="false ends all tokens, and the access to clusters.")


def _meaning(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a body means; a digest of the password is not kept, which could be guessed from it."""
    return {name: value for name, value in stated(values).items() if name != "password"}


@extend_schema(methods=["GET"], responses=page_schema(PersonOut))
@extend_schema(
    methods=["POST"],
    summary="Create a person",
    parameters=[KEY],
    request=NewPerson,
    responses={201: PersonOut, **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewPerson, _meaning)
def people(request: Request) -> Response:
    """List all people, for platform staff. POST creates one who signs in with a password (operators)."""
    if request.method == "GET":
        return serialized_page(request, services.visible(current_user(request)), PersonOut, "username")
    values = read(NewPerson, request)
    _require_all_scopes(request, values)
    return _out(services.create(current_user(request), values.pop("username"), values.pop("password"), **values), 201)


@extend_schema(methods=["GET"], responses=PersonOut)
@described("Change a person", PersonChange, {200: PersonOut, **refusals("last_operator")})
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def person(request: Request, username: str) -> Response:
    """Return one person, with the ETag. PUT and PATCH change the platform role, deactivate the person, or change name
    and address (operators); they need If-Match.
    """
    row = services.person(current_user(request), username)
    if request.method in METHODS:
        changes = edits.changes(PersonChange, request, PersonOut(row).data)
        _require_all_scopes(request, changes)
        row = services.change(current_user(request), row, changes, etag.lock(request, _version))
    return _out(row)


def _require_all_scopes(request: Request, changes: Mapping[str, Any]) -> None:
    """Raise Forbidden if a token gives more than it has: a platform role, or access that had ended, to a person who
    signs in with all scopes.
    """
    gives = bool(changes.get("platform_role") or changes.get("is_active"))
    if gives and not {*Scope.values} <= {*scopes(request)}:
        words = "A platform role, and access that had ended, can be given only with all scopes."
        raise Forbidden("operator", detail=words, hint=f"Use a token with the scopes {', '.join(Scope.values)}.")


def _version(row: User) -> str:
    return etag.version(row.email, row.first_name, row.last_name, row.platform_role, row.is_active)


def _out(row: User, status: int = 200) -> Response:
    return Response(PersonOut(row).data, status=status, headers={"ETag": etag.entity_tag(_version(row))})


urlpatterns = [
    path("people", people),
    path("people/<str:username>", person),
]
