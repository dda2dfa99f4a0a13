"""The audit log: search, export, and the chain heads that prove it complete."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, timedelta
from typing import Any

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import content_negotiation_class
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import exports
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view, is_head
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import query_time, query_value, query_values
from portal.api.schemas.json_object import JsonObject
from portal.audit import heads as audit_heads
from portal.core import rfc3339
from portal.core.errors import Invalid
from portal.core.models import AuditEntry, AuditSeal
from portal.tenants import audit_log
from portal.tenants.audit_log import Search

COLUMNS = ("id", "at", "actor", "action", "target", "team", "project", "before", "after", "source", "request_id")
SEALED = ("position", "digest")
HEADS_SHOWN = timedelta(days=31)
SEARCH = [
    *(OpenApiParameter(name, OpenApiTypes.STR) for name in audit_log.NAMED),
    OpenApiParameter("action", OpenApiTypes.STR, description="Whole, or its first word: limit finds limit.set."),
    OpenApiParameter("since", OpenApiTypes.DATETIME, description="From then on."),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Before then."),
    OpenApiParameter("q", OpenApiTypes.STR, description="Anywhere, also in before and after."),
]


class EntryOut(serializers.Serializer):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    target = serializers.CharField()
    team = serializers.CharField(help_text="Empty: the platform's.")
    project = serializers.CharField()
    before = JsonObject(allow_null=True)
    after = JsonObject(allow_null=True)
    source = JsonObject()  # type: ignore[assignment]  # a field of that name, not the option
    request_id = serializers.CharField()
    position = serializers.IntegerField(allow_null=True, help_text="In the chain; null until it is sealed.")
    digest = serializers.CharField(allow_null=True)


class HeadOut(serializers.Serializer):
    day = serializers.DateField()
    count = serializers.IntegerField(help_text="Entries in the chain at the end of the day.")
    digest = serializers.CharField()


class HeadsOut(serializers.Serializer):
    results = HeadOut(many=True)


@extend_schema(parameters=SEARCH, responses=page_schema(EntryOut))
@api_view(["GET"])
def entries(request: Request) -> Response:
    """List audit entries, newest first. Operators and auditors see all of them, leads those of their teams."""
    rows = audit_log.matching(current_user(request), _search(request))
    return page(request, rows, lambda found: [document(entry) for entry in found], "-id")


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
        lines(map(document, found)),
        content_type=media_type,
        headers=exports.attachment(f"audit.{format_}"),
    )


@extend_schema(parameters=[OpenApiParameter("since", OpenApiTypes.DATE)], responses=HeadsOut)
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
    return Response({"results": HeadOut(audit_log.heads(user, since), many=True).data})


def document(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as REST and exports show it; its seal is loaded, if it has one."""
    seal: AuditSeal | None = getattr(entry, "seal", None)
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    values = {name: getattr(entry, name) for name in COLUMNS} | {"at": at}
    return values | {name: getattr(seal, name, None) for name in SEALED}


def _search(request: Request) -> Search:
    named = {name: tuple(query_values(request, name)) for name in (*audit_log.NAMED, "action")}
    times = {name: query_time(request, name) for name in ("since", "until")}
    return Search(**named, **times, q=query_value(request, "q"))  # type: ignore[arg-type]


def _jsonl(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    for values in documents:
        yield json.dumps(values, ensure_ascii=False) + "\n"


def _csv(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield exports.line((*COLUMNS, *SEALED))
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
