"""Announcements: what operators tell everybody."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, current_user
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Body, Choice, Text, Timestamp, query_flag, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.models import Announcement
from portal.tenants import announcements as services

SEVERITIES = Announcement.Severity.values


@dataclass(frozen=True)
class AnnouncementOut:
    id: int
    text: str
    severity: Annotated[str, partial(serializers.ChoiceField, SEVERITIES)]
    starts_at: Annotated[datetime | None, "null: shown at once."]
    ends_at: Annotated[datetime | None, "Shown until before it; null: until it is deleted."]
    created_by: str
    created_at: datetime


class NewAnnouncement(Body):
    text = Text(max_length=services.MAX_TEXT, help_text="One line, plain text.")
    severity = Choice(choices=SEVERITIES, default=Announcement.Severity.INFO.value)
    starts_at = Timestamp(allow_null=True, default=None)
    ends_at = Timestamp(allow_null=True, default=None)


class AnnouncementChange(Update):
    """An announcement as GET gives it, or a part of it."""

    shown = output_of(AnnouncementOut)
    text = Text(required=False, max_length=services.MAX_TEXT)
    severity = Choice(required=False, choices=SEVERITIES)
    starts_at = Timestamp(required=False, allow_null=True)
    ends_at = Timestamp(required=False, allow_null=True)


@extend_schema(
    methods=["GET"],
    parameters=[
        OpenApiParameter(
            "all", OpenApiTypes.BOOL, description="Also those that are not shown now; for operators and auditors."
        )
    ],
    responses=page_schema(output_of(AnnouncementOut)),
)
@extend_schema(
    methods=["POST"],
    summary="Create an announcement",
    parameters=[KEY],
    request=NewAnnouncement,
    responses={201: output_of(AnnouncementOut), **refusals("time_invalid")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewAnnouncement)
def announcements(request: Request) -> Response:
    """List what operators tell everybody now, newest first. POST creates an announcement (operators)."""
    user = current_user(request)
    if request.method == "POST":
        return _out(services.save(user, Announcement(), read(NewAnnouncement, request)), 201)
    rows = services.all_of(user) if query_flag(request, "all", default=False) else services.shown()
    return page(request, rows, lambda found: documents(found, AnnouncementOut), "-pk")


@extend_schema(methods=["GET"], responses=output_of(AnnouncementOut))
@extend_schema(methods=["DELETE"], summary="Delete an announcement", responses={204: None})
@described("Change an announcement", AnnouncementChange, {200: output_of(AnnouncementOut), **refusals("time_invalid")})
@api_view(["GET", *METHODS, "DELETE"])
@permission_classes([AdminScope])
def announcement(request: Request, announcement_id: int) -> Response:
    """Return an announcement, with its ETag; one that is not shown now to platform staff alone. PUT and PATCH change it
    and need If-Match, and DELETE deletes it (operators).
    """
    user = current_user(request)
    row = services.get(user, announcement_id)
    if request.method == "DELETE":
        services.delete(user, row)
        return Response(status=204)
    if request.method in METHODS:
        changes = edits.changes(AnnouncementChange, request, document(row, AnnouncementOut))
        row = services.save(user, row, changes, etag.lock(request, _version))
    return _out(row)


def _version(row: Announcement) -> str:
    return etag.version(row.text, row.severity, str(row.starts_at), str(row.ends_at))


def _out(row: Announcement, status: int = 200) -> Response:
    return Response(document(row, AnnouncementOut), status=status, headers={"ETag": etag.entity_tag(_version(row))})


urlpatterns = [
    path("announcements", announcements),
    path("announcements/<int:announcement_id>", announcement),
]
