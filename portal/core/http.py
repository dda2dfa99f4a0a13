"""What happens to every HTTP request before a view sees it."""

import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.core import source
from portal.core.errors import LengthRequired, Malformed, Problem, TooLarge

if TYPE_CHECKING:
    from portal.tenants.models import User

Next = Callable[[HttpRequest], HttpResponse]
GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class AuthenticatedHttpRequest(HttpRequest):
    """A request behind `login_required` or the API's authentication: `user` is a person, never anonymous."""

    user: "User"


def request_id(get_response: Next) -> Next:
    """Give the request an id (that of a plain `X-Request-ID`), and put it on log lines and answer."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        id_ = given if GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        request.META["REQUEST_ID"] = id_
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=id_)
        response = get_response(request)
        response["X-Request-ID"] = id_
        return response

    return middleware


def came_from(get_response: Next) -> Next:
    """Let the audit log know the way in, the address and the request's id."""

    def middleware(request: HttpRequest) -> HttpResponse:
        way = next((way for way in ("api", "admin") if request.path.startswith(f"/{way}/")), "page")
        with source.came_by(way, address=address(request), request_id=request.META["REQUEST_ID"]):
            return get_response(request)

    return middleware


def address(request: HttpRequest) -> str:
    """The client's: behind a proxy, the one that the proxy saw, since what stands before it anyone can send."""
    forwarded: str = request.META.get("HTTP_X_FORWARDED_FOR", "") if settings.BEHIND_PROXY else ""
    return forwarded.rpartition(",")[2].strip() or str(request.META.get("REMOTE_ADDR", ""))


def body_limit(get_response: Next) -> Next:
    """Refuse a body above `BODY_LIMIT_BYTES` by its declared length, before a byte of it is read; and one that is still
    in chunks (`portal.chunked`), of which Django would read nothing."""

    def middleware(request: HttpRequest) -> HttpResponse:
        problem = _wrong_with_body(request)
        if problem is None:
            return get_response(request)
        return JsonResponse(problem.document(), status=problem.status, content_type="application/problem+json")

    return middleware


def _wrong_with_body(request: HttpRequest) -> Problem | None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > settings.BODY_LIMIT_BYTES:
        return TooLarge(f"The body is larger than {settings.BODY_LIMIT_BYTES} bytes.", hint="Send less.")
    if "HTTP_TRANSFER_ENCODING" not in request.META:
        return None
    if request.META.get("CONTENT_LENGTH"):
        return Malformed(
            "Content-Length and Transfer-Encoding contradict each other.", hint="Send Content-Length alone."
        )
    return LengthRequired("The server cannot tell where the body ends.", hint="Send Content-Length.")


def log_user(get_response: Next) -> Next:
    """Put the signed-in person's name on log lines."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            structlog.contextvars.bind_contextvars(user=request.user.get_username())
        return get_response(request)

    return middleware
