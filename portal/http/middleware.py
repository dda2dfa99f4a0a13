"""Middleware that runs before every view."""

import re
import secrets
import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.audit import context
from portal.core.errors import Busy, LengthRequired, Malformed, Problem, TooLarge
from portal.http import client_address, content_type

log = structlog.get_logger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponse]
SIGN_IN = ("/login", "/admin/login/")
SIGN_IN_LIMIT_BYTES = 8 * 1024
"""A name, a password, and where to go next."""
PROBES = ("/livez", "/readyz", "/metrics")
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id(get_response: GetResponse) -> GetResponse:
    """Give the request an id (or keep a valid `X-Request-ID`), and add it to log lines and the answer. Log each request
    but those of probes.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        id_ = given if ACCEPTED_ID.fullmatch(given) else secrets.token_hex(8)
        request.META["REQUEST_ID"] = id_
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=id_)
        began = time.monotonic()
        response = get_response(request)
        response["X-Request-ID"] = id_
        if request.path not in PROBES:
            ms = round(1000 * (time.monotonic() - began))
            log.info("request", method=request.method, path=request.path, status=response.status_code, ms=ms)
        return response

    return middleware


def keep_nothing(get_response: GetResponse) -> GetResponse:
    """Have no cache keep an answer that does not say how it may be kept, errors included: most tell of one person."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Cache-Control", "private, no-store")
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


def check_body(get_response: GetResponse) -> GetResponse:
    """Refuse, before it is read, a body that is not text in UTF-8; one above `BODY_LIMIT_BYTES`, or of a sign-in above
    `SIGN_IN_LIMIT_BYTES`, by its declared length; and one in chunks, which Django would take for empty if the
    server hands it on so.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        problem = _body_problem(request)
        return get_response(request) if problem is None else refusal(request, problem)

    return middleware


def refusal(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the answer for a request that no view sees: problem details under /api, a line of text elsewhere."""
    headers = {"Retry-After": str(problem.retry_after_s)} if isinstance(problem, Busy) else {}
    if request.path.startswith("/api/"):
        kind = "application/problem+json"
        return JsonResponse(problem.document(), status=problem.status, headers=headers, content_type=kind)
    words = f"{problem.detail} {problem.hint}\n"
    return HttpResponse(words, status=problem.status, headers=headers, content_type="text/plain; charset=utf-8")


def _body_problem(request: HttpRequest) -> Problem | None:
    if content_type.REFUSED in request.META or not content_type.is_utf8(request.META.get("CONTENT_TYPE", "")):
        return content_type.problem()
    length = request.META.get("CONTENT_LENGTH") or "0"
    most = SIGN_IN_LIMIT_BYTES if request.path in SIGN_IN else settings.BODY_LIMIT_BYTES
    if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) > most:
        return TooLarge(f"The body is larger than {most} bytes.", hint="Send less.")
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
        return refusal(request, error) if isinstance(error, Busy) else None


def log_user(get_response: GetResponse) -> GetResponse:
    """Add the signed-in person's name to log lines."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            structlog.contextvars.bind_contextvars(user=request.user.get_username())
        return get_response(request)

    return middleware
