"""Who calls: a bearer token with scopes, or the browser's session, which has every scope of its person."""

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
    """`Authorization: Bearer gpup_…`: 401 for a wrong token, 429 for one too many from its address.

    A right token is never refused for the wrong ones of others behind the same address: finding it is one look-up by
    a unique index, and nothing at all is looked up for what does not have the form of a token.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, token = get_authorization_header(request).decode("latin-1").partition(" ")
        if not scheme:
            return None
        row = tokens.find(token.strip()) if scheme.lower() == "bearer" else None
        if row is None:
            if wait_s := address_limits.count_wrong_token(request):
                raise Throttled(wait_s, "The token is unknown, revoked or expired, as too many from your address were.")
            raise AuthenticationFailed("The token is unknown, revoked or expired.")
        structlog.contextvars.bind_contextvars(user=row.user.username, token=row.prefix)
        context.add(token=row.prefix)
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpu-portal"'


def current_user(request: Request) -> User:
    """The caller of a request that `MethodScope` let through."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def scopes(request: Request) -> list[str]:
    """The scopes of the request: the token's, or all of them in a session."""
    return request.auth.scopes if isinstance(request.auth, ApiToken) else list(Scope.values)


def require_scope(request: Request, needed: str) -> None:
    """Return if the request has the scope; else Forbidden."""
    if needed not in scopes(request):
        raise Forbidden(
            str(needed),
            detail=f"The token lacks the scope {needed}.",
            hint=f"Use a token with the scope {needed}.",
        )


class MethodScope(BasePermission):
    """Signed in, with scope `read` to read and `request` to write."""

    read_scope: ClassVar[str] = Scope.READ
    write_scope: ClassVar[str] = Scope.REQUEST

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not request.user.is_authenticated:
            return False
        require_scope(request, self.read_scope if request.method in SAFE_METHODS else self.write_scope)
        return True


class RequestScope(MethodScope):
    """As `MethodScope`, with scope `request` to read too: for what hands out credentials."""

    read_scope = Scope.REQUEST


class LeadScope(MethodScope):
    """As `MethodScope`, with scope `approve` to write: what leads do for their team."""

    write_scope = Scope.APPROVE


class AdminScope(MethodScope):
    """As `MethodScope`, with scope `admin` to write."""

    write_scope = Scope.ADMIN
