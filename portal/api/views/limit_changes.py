"""Several limits in one change, its preview, and the matrix of all quotas."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.limits import changes as limit_changes
from allocations.limits.matrix import matrix as limit_matrix
from allocations.limits.matrix import narrowed
from allocations.limits.services import LimitChange
from portal.api.http.auth import LeadScope, current_user
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.strict import query_value, read
from portal.api.schemas.limit_changes import (
    ChangedLimitsOut,
    ChangeEffectOut,
    ChangesBody,
    ChangesPreviewOut,
    MatrixOut,
    PreviewedChangesBody,
    PreviewSums,
)
from portal.api.schemas.limit_fields import LimitOut
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.api.views.limits import holder_and_scope, quota_of, require_holder_scope
from portal.core.errors import Invalid
from portal.tenants.models import User


@extend_schema(
    parameters=[
        OpenApiParameter("team", OpenApiTypes.STR, description="A part of the slug or name of teams and departments."),
        OpenApiParameter("pool", OpenApiTypes.STR, description="A part of the key of pools."),
    ],
    responses=output_of(MatrixOut),
)
@api_view(["GET"])
def matrix(request: Request) -> Response:
    """Return the quota of each pool that each team has which the caller may see, with its use and its loans. Who sees
    all teams gets those of departments too, each before its teams.
    """
    found = narrowed(limit_matrix(current_user(request)), query_value(request, "team"), query_value(request, "pool"))
    return Response(document(found, MatrixOut))


@extend_schema(request=ChangesBody, responses={200: output_of(ChangesPreviewOut), **refusals("not_found")})
@api_view(["POST"])
@permission_classes([LeadScope])
def preview(request: Request) -> Response:
    """Return what setting several limits together would do, and the token that applies exactly these changes."""
    user = current_user(request)
    changes = _changes(user, read(ChangesBody, request)["changes"])
    found = limit_changes.preview(user, changes)
    effects = zip((change.row() for change in changes), found.effects, strict=True)
    return Response(document(found, PreviewSums) | {"changes": documents(effects, ChangeEffectOut)})


@extend_schema(
    summary="Set several limits",
    parameters=[KEY],
    request=PreviewedChangesBody,
    responses={200: output_of(ChangedLimitsOut), **refusals("not_found", "preview_outdated")},
)
@api_view(["POST"])
@permission_classes([LeadScope])
@idempotent(PreviewedChangesBody)
def changes(request: Request) -> Response:
    """Set all of several limits, or none, as they were previewed. Refused if the changes are not those of the preview,
    or if one of the limits has changed since then.
    """
    user = current_user(request)
    body = read(PreviewedChangesBody, request)
    wanted = _changes(user, body["changes"])
    for change in wanted:
        require_holder_scope(request, change.holder)
    rows = limit_changes.apply(user, wanted, body["token"])
    return Response({"results": documents(rows, LimitOut)})


def _changes(user: User, bodies: list[dict[str, Any]]) -> list[LimitChange]:
    """Return the changes; raise Invalid with all errors, by place in the list."""
    found: list[LimitChange] = []
    errors: dict[str, list[str]] = {}
    for number, body in enumerate(bodies):
        try:
            found.append(LimitChange(*holder_and_scope(user, body), quota_of(body)))
        except Invalid as problem:
            errors |= {f"changes.{number}.{field}": sentences for field, sentences in problem.errors.items()}
    if errors:
        raise Invalid(errors)
    return found


urlpatterns = [
    path("limits/matrix", matrix),
    path("limits/changes", changes),
    path("limits/changes/preview", preview),
]
