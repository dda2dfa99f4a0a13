"""Authentication of REST calls: a bearer token with scopes, or a browser session, which has every scope."""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import structlog
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.audit import context
from portal.core.errors import Forbidden
from portal.http import address_limits
from portal.tenants import tokens
from portal.tenants.models import ApiToken, Scope, User

if TYPE_CHECKING:
    from rest_framework.views import APIView  # DRF imports this module while it loads its views


class BearerAuthentication(BaseAuthentication):
    """Authenticates `Authorization: Bearer gpup_…`: 401 for a wrong token, 429 for too many wrong ones from one
    address.

    A valid token is always accepted, whatever others behind the same address sent: it is found by one look-up in a
    unique index. A value without the form of a token is rejected without a look-up.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, token = get_authorization_header(request).decode("latin-1").partition(" ")
        if not scheme:
            return None
        why = "The token is unknown, revoked or expired."
        if is_other := scheme.lower() != "bearer":
            why = "A token is sent as Authorization: Bearer <token>; no other scheme is read."
        try:
            row = None if is_other else tokens.find(token.strip())
        except tokens.Expired as expired:
            row, why = None, f"The token expired at {expired.at:%Y-%m-%d %H:%M:%S} UTC."
        if row is None:
            if wait_s := address_limits.count_wrong_token(request):
                raise Throttled(wait_s, "The token is unknown, revoked or expired, as too many from your address were.")
            raise AuthenticationFailed(why)
        structlog.contextvars.bind_contextvars(user=row.user.username, token=row.prefix)
        context.add(token=row.prefix)
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpu-portal"'


def current_user(request: Request) -> User:
    """Return the user of a request that `MethodScope` has admitted."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def scopes(request: Request) -> list[str]:
    """Return the scopes of the request: the token's, or all of them in a session."""
    return request.auth.scopes if isinstance(request.auth, ApiToken) else list(Scope.values)


def token_expires_at(request: Request) -> datetime | None:
    """Return when the token of the request ends; None in a session."""
    return request.auth.expires_at if isinstance(request.auth, ApiToken) else None


def require_scope(request: Request, needed: str) -> None:
    """Raise Forbidden unless the request has the scope."""
    if needed not in scopes(request):
        raise Forbidden(
            str(needed),
            detail=f"The token lacks the scope {needed}.",
            hint=f"Use a token with the scope {needed}.",
        )


class MethodScope(BasePermission):
    """Requires a signed-in user, with scope `read` to read and `request` to write."""

    read_scope: ClassVar[str] = Scope.READ
    write_scope: ClassVar[str] = Scope.REQUEST

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not request.user.is_authenticated:
            return False
        require_scope(request, self.read_scope if request.method in SAFE_METHODS else self.write_scope)
        return True


class RequestScope(MethodScope):
    """Like `MethodScope`, but requires scope `request` to read too: for credentials."""

    read_scope = Scope.REQUEST


class LeadScope(MethodScope):
    """Like `MethodScope`, but requires scope `approve` to write: for what leads do in their team."""

    write_scope = Scope.APPROVE


class AdminScope(MethodScope):
    """Like `MethodScope`, but requires scope `admin` to write."""

    write_scope = Scope.ADMIN
