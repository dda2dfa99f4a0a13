"""Middleware that runs before every view."""

import re
import secrets
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.audit import context
from portal.core.errors import Busy, LengthRequired, Malformed, Problem, TooLarge
from portal.http import client_address

GetResponse = Callable[[HttpRequest], HttpResponse]
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id(get_response: GetResponse) -> GetResponse:
    """Give the request an id (or keep a valid `X-Request-ID`), and add it to log lines and the answer."""

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        id_ = given if ACCEPTED_ID.fullmatch(given) else secrets.token_hex(8)
        request.META["REQUEST_ID"] = id_
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=id_)
        response = get_response(request)
        response["X-Request-ID"] = id_
        return response

    return middleware


def record_channel(get_response: GetResponse) -> GetResponse:
    """Set the audit log's channel, address and request id."""

    def middleware(request: HttpRequest) -> HttpResponse:
        way = next((way for way in ("api", "admin") if request.path.startswith(f"/{way}/")), "page")
        with context.channel(way, address=address(request), request_id=request.META["REQUEST_ID"]):
            return get_response(request)

    return middleware


def address(request: HttpRequest) -> str:
    """Return the client's address; `TRUSTED_PROXIES` is the number of proxies that may report it."""
    return client_address.client_address(
        str(request.META.get("REMOTE_ADDR", "")),
        str(request.META.get("HTTP_X_FORWARDED_FOR", "")),
        settings.TRUSTED_PROXIES,
    )


def body_limit(get_response: GetResponse) -> GetResponse:
    """Refuse a body above `BODY_LIMIT_BYTES` by its declared length, before it is read; and a body that is still
    chunked (`portal.http.chunked`), which Django would take for empty.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        problem = _body_problem(request)
        if problem is None:
            return get_response(request)
        return JsonResponse(problem.document(), status=problem.status, content_type="application/problem+json")

    return middleware


def _body_problem(request: HttpRequest) -> Problem | None:
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


class AnswerBusy:
    """Answers `Busy` with 503 and Retry-After for views without a handler of their own, such as Django's admin."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, Busy):
            return None
        words = f"{error.detail} {error.hint}\n"
        headers = {"Retry-After": str(error.retry_after_s)}
        return HttpResponse(words, content_type="text/plain", status=error.status, headers=headers)


def log_user(get_response: GetResponse) -> GetResponse:
    """Add the signed-in person's name to log lines."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            structlog.contextvars.bind_contextvars(user=request.user.get_username())
        return get_response(request)

    return middleware
