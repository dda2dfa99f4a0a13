"""Saved views of costs: own ones, and those of teams."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Annotated

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Body, Text, query_values, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.tenants import access
from quotas.costs import saved_views as services


@dataclass(frozen=True)
class SavedViewOut:
    id: int
    name: str
    query: Annotated[str, "Of /costs, and of the page of costs."]
    owner: Annotated[str, attrgetter("owner.username")]
    team: Annotated[str | None, "null: only its owner sees it.", lambda row: row.team and row.team.slug]
    created_at: datetime


class NewSavedView(Body):
    name = Text(max_length=services.MAX_NAME)
    query = Text(
        max_length=services.MAX_QUERY, help_text=f"Parameters of /costs: {', '.join(sorted(services.PARAMETERS))}."
    )
    team = Text(required=False, allow_null=True, max_length=40, help_text="Share it with this team.")


@extend_schema(
    methods=["GET"],
    parameters=[OpenApiParameter("team", OpenApiTypes.STR)],
    responses=page_schema(output_of(SavedViewOut)),
)
@extend_schema(
    methods=["POST"],
    summary="Save a view of costs",
    parameters=[KEY],
    request=NewSavedView,
    responses={201: output_of(SavedViewOut), **refusals("name_taken", "not_found")},
)
@api_view(["GET", "POST"])
@idempotent(NewSavedView)
def saved_views(request: Request) -> Response:
    """List the caller's saved views of costs, and those of the caller's teams. POST saves one, for oneself or for a
    team of which the caller is a member. A view is a question: who opens it sees what they may see.
    """
    user = current_user(request)
    if request.method == "GET":
        rows = services.visible(user)
        if teams := query_values(request, "team"):
            rows = rows.filter(team__slug__in=teams)
        return page(request, rows, partial(documents, cls=SavedViewOut), "id")
    values = read(NewSavedView, request)
    team = access.team_for(user, values["team"]) if values.get("team") else None
    row = services.save(user, values["name"], values["query"], team)
    return Response(document(row, SavedViewOut), status=status.HTTP_201_CREATED)


@extend_schema(methods=["GET"], responses=output_of(SavedViewOut))
@extend_schema(methods=["DELETE"], summary="Delete a saved view", responses={204: None})
@api_view(["GET", "DELETE"])
def saved_view(request: Request, view_id: int) -> Response:
    """Return a saved view. DELETE deletes it: its owner may, and of a team its leads."""
    user = current_user(request)
    row = services.get(user, view_id)
    if request.method == "DELETE":
        services.delete(user, row)
        return Response(status=status.HTTP_204_NO_CONTENT)
    return Response(document(row, SavedViewOut))


urlpatterns = [
    path("saved-views", saved_views),
    path("saved-views/<int:view_id>", saved_view),
]
