"""Renders every error as `application/problem+json` (RFC 9457) with reason and hint; never a traceback."""

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.api.http import throttling
from portal.core.errors import Busy, Invalid, Malformed, NotVisible, Problem, Retryable, TooLarge, UnsupportedMediaType

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
INTERNAL, INTERNAL_TITLE = "internal", "Something went wrong"
# DRF's exception: reason, hint. The first that fits.
KNOWN: list[tuple[type[exceptions.APIException], str, str]] = [
    (exceptions.ParseError, "malformed", "Send a JSON body."),
    (exceptions.NotAuthenticated, "not_authenticated", "Send Authorization: Bearer <token>, or sign in."),
    (
        exceptions.AuthenticationFailed,
        "token_invalid",
        "Make a new token at POST /api/v1/tokens or on your page.",
    ),
    (exceptions.PermissionDenied, "role_missing", ""),
    (exceptions.NotFound, "not_found", ""),
    (exceptions.MethodNotAllowed, "method_not_allowed", "The header Allow lists the methods."),
    (exceptions.NotAcceptable, "not_acceptable", "Accept application/json."),
    (exceptions.Throttled, "throttled", "Wait as long as Retry-After says."),
]


class LibraryProblem(Problem):
    """An error raised by Django or DRF, as a Problem."""

    def __init__(self, status: int, title: str, detail: str, reason: str, hint: str = "") -> None:
        super().__init__(detail, reason=reason, hint=hint)
        self.status = status
        self.title = title


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for an exception in a view, and roll its transaction back. Called by DRF.

    It is JSON, whatever the view renders otherwise.
    """
    set_rollback()
    error = throttling.count_refusal(context["request"], error)
    context["request"].accepted_renderer, context["request"].accepted_media_type = JSONRenderer(), CONTENT_TYPE
    problem = as_problem(error)
    if problem.status >= 500 and not isinstance(problem, Busy):
        log.error("api.error", exc_info=error)
    headers = {}
    if isinstance(error, exceptions.APIException):
        headers = {
            name: value
            for name, value in (
                ("WWW-Authenticate", getattr(error, "auth_header", None)),
                ("Retry-After", _whole_seconds(getattr(error, "wait", None))),
                ("Allow", _allowed(error, context)),
            )
            if value
        }
    if retry_after_s := getattr(problem, "retry_after_s", None):
        headers["Retry-After"] = str(retry_after_s)
    return Response(problem.document(), status=problem.status, headers=headers, content_type=CONTENT_TYPE)


def as_problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return Invalid(_by_field(error.detail))
        case exceptions.UnsupportedMediaType():
            return UnsupportedMediaType(str(error.detail), hint="Send Content-Type: application/json.")
        case exceptions.APIException():
            reason, hint = next(((r, h) for kind, r, h in KNOWN if isinstance(error, kind)), ("error", ""))
            return LibraryProblem(error.status_code, title_of(type(error)), str(error.detail), reason, hint)
        case Http404():
            return NotVisible()
        case PermissionDenied():
            return LibraryProblem(403, "Not allowed", str(error) or "You may not do this.", "role_missing")
        case BadRequest():
            return Malformed("The body cannot be read.", hint="Send a JSON body.")
        case RequestDataTooBig():
            return TooLarge("The body is too large.", hint="Send less.")
        case Retryable() if error.detail:
            return Busy(error.detail, reason=error.reason, hint=error.hint)
        case Retryable():
            return Busy("This is busy just now.", hint="Send the same request again in a moment.")
    return LibraryProblem(500, INTERNAL_TITLE, "The portal failed. It has been logged.", INTERNAL)


def title_of(kind: type[exceptions.APIException]) -> str:
    """Return what a library's exception is called, whatever happened."""
    return HTTPStatus(kind.status_code).phrase if "{" in str(kind.default_detail) else str(kind.default_detail)


@csrf_exempt
def unknown_route(request: HttpRequest, path: str = "") -> JsonResponse:
    """Return 404 for any path under /api that has no route, whatever the method."""
    return reply(NotVisible("This address", hint="GET /api/v1/schema lists what there is."))


def reply(problem: Problem) -> JsonResponse:
    """Return a problem as a response outside DRF's views."""
    return JsonResponse(problem.document(), status=problem.status, content_type=CONTENT_TYPE)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the answer for a request that Django refuses before any view. Called by Django as handler400."""
    if request.path.startswith("/api/"):
        hint = "Send the address and the headers of the portal as it is published."
        return reply(Malformed("The portal cannot take this request.", hint=hint))
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the answer for an error outside any view. Called by Django as handler500."""
    if request.path.startswith("/api/"):
        return reply(as_problem(Exception()))
    return defaults.server_error(request)


def _by_field(detail: Any) -> dict[str, list[str]]:
    """Return DRF's nested error detail as `{"field.inner": [sentence, …]}`."""
    if isinstance(detail, dict):
        return {
            name if inner == "non_field_errors" else f"{name}.{inner}": messages
            for name, value in detail.items()
            for inner, messages in _by_field(value).items()
        }
    if isinstance(detail, list) and any(isinstance(item, dict) for item in detail):
        return _by_field({str(index): item for index, item in enumerate(detail) if item})
    items = detail if isinstance(detail, list) else [detail]
    return {"non_field_errors": [str(item) for item in items]}


def _whole_seconds(wait: float | None) -> str | None:
    return str(int(wait) + 1) if wait is not None else None


def _allowed(error: exceptions.APIException, context: dict[str, Any]) -> str | None:
    view = context.get("view")
    return ", ".join(view.allowed_methods) if isinstance(error, exceptions.MethodNotAllowed) and view else None
