"""The audit log: search, export, and the chain heads that prove it complete."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import content_negotiation_class
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.domain.documents import fields_of
from portal.api.http import exports
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view, is_head
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import query_time, query_value, query_values
from portal.api.schemas.outputs import document, documents, output_of
from portal.audit import heads as audit_heads
from portal.audit.heads import Head
from portal.core import rfc3339
from portal.core.errors import Invalid
from portal.core.models import AuditEntry
from portal.tenants import audit_log
from portal.tenants.audit_log import Search

HEADS_SHOWN = timedelta(days=31)
SEARCH = [
    *(OpenApiParameter(name, OpenApiTypes.STR) for name in audit_log.NAMED),
    OpenApiParameter("action", OpenApiTypes.STR, description="Whole, or its first word: limit finds limit.set."),
    OpenApiParameter("since", OpenApiTypes.DATETIME, description="From then on."),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Before then."),
    OpenApiParameter("q", OpenApiTypes.STR, description="Anywhere, also in before and after."),
]


def _at(entry: AuditEntry) -> str:
    return entry.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class EntryOut:
    """What is read from an ``AuditEntry``; its seal is loaded, if it has one."""

    id: int
    at: Annotated[datetime, _at]
    actor: str
    action: str
    target: str
    team: Annotated[str, "Empty: the platform's."]
    project: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    source: Mapping[str, Any]
    request_id: str
    position: Annotated[
        int | None,
        "In the chain; null until it is sealed.",
        lambda entry: entry.seal.position if hasattr(entry, "seal") else None,
    ]
    digest: Annotated[str | None, lambda entry: entry.seal.digest if hasattr(entry, "seal") else None]


COLUMNS = [each.name for each in fields_of(EntryOut)]


@dataclass(frozen=True)
class HeadsOut:
    results: Sequence[Head]


@extend_schema(parameters=SEARCH, responses=page_schema(output_of(EntryOut)))
@api_view(["GET"])
def entries(request: Request) -> Response:
    """List audit entries, newest first. Operators and auditors see all of them, leads those of their teams."""
    rows = audit_log.matching(current_user(request), _search(request))
    return page(request, rows, partial(documents, cls=EntryOut), "-id")


@extend_schema(
    parameters=[*SEARCH, OpenApiParameter("format", OpenApiTypes.STR, enum=["csv", "jsonl"], default="jsonl")],
    responses={(200, "application/jsonl"): OpenApiTypes.STR, (200, "text/csv"): OpenApiTypes.STR},
)
@api_view(["GET"])
@content_negotiation_class(exports.RouteNegotiation)
def export(request: Request) -> StreamingHttpResponse:
    """Stream all entries found, newest first, as CSV or JSON Lines. The export is an entry of the log itself."""
    format_ = query_value(request, "format", "jsonl")
    if format_ not in FORMATS:
        raise Invalid({"format": [f"Use one of {', '.join(FORMATS)}."]})
    media_type, lines = FORMATS[format_]
    user, search = current_user(request), _search(request)
    found = audit_log.nothing(user) if is_head(request) else audit_log.export(user, search)
    return StreamingHttpResponse(
        lines(document(entry, EntryOut) for entry in found),
        content_type=media_type,
        headers=exports.attachment(f"audit.{format_}"),
    )


@extend_schema(parameters=[OpenApiParameter("since", OpenApiTypes.DATE)], responses=output_of(HeadsOut))
@api_view(["GET"])
def heads(request: Request) -> Response:
    """List the head of the chain at the end of each past day, oldest first, to be stored elsewhere. The last 31 days
    unless `since` says otherwise. For operators and auditors.
    """
    user, text = current_user(request), request.query_params.get("since")
    try:
        since = rfc3339.day(text) if text is not None else audit_heads.today() - HEADS_SHOWN
    except ValueError as error:
        raise Invalid({"since": ["Give a day as 2026-11-30."]}) from error
    return Response({"results": documents(audit_log.heads(user, since), Head)})


def _search(request: Request) -> Search:
    named = {name: tuple(query_values(request, name)) for name in (*audit_log.NAMED, "action")}
    times = {name: query_time(request, name) for name in ("since", "until")}
    return Search(**named, **times, q=query_value(request, "q"))  # type: ignore[arg-type]


def _jsonl(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    for values in documents:
        yield json.dumps(values, ensure_ascii=False) + "\n"


def _csv(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield exports.line(COLUMNS)
    for values in documents:
        yield exports.line(exports.cell(value) for value in values.values())


FORMATS: dict[str, tuple[str, Callable[[Iterable[dict[str, Any]]], Iterator[str]]]] = {
    "csv": (exports.CSV, _csv),
    "jsonl": ("application/jsonl", _jsonl),
}


urlpatterns = [
    path("audit", entries),
    path("audit/export", export),
    path("audit/heads", heads),
]
