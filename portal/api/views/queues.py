"""A team's queue: waiting and admitted entries, with positions and reasons, and how much is lent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from typing import Annotated, Any
from uuid import UUID

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import URLField
from rest_framework.utils.urls import replace_query_param

from allocations.domain.documents import FieldInfo
from allocations.queues import lending
from allocations.queues import queue as team_queue
from allocations.queues.lending import TeamBalance
from allocations.queues.queue import Load
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import MAX_PAGE_SIZE, page, page_schema
from portal.api.http.strict import query_whole
from portal.api.schemas.allocation_output import PHASES
from portal.api.schemas.outputs import INLINE, document, documents, output_of
from portal.api.views.jobs import STATES as JOB_STATES
from portal.tenants import access
from portal.tenants.models import Team

KINDS, ORDERS = ["allocation", "job"], ["portal", "kueue"]
STATES = list(dict.fromkeys([*PHASES, *JOB_STATES]))


@dataclass(frozen=True)
class QueueEntryOut:
    kind: Annotated[str, FieldInfo(choices=tuple(KINDS))]
    allocation: Annotated[UUID | None, lambda entry: entry.id if entry.kind == "allocation" else None]
    job: Annotated[
        UUID | None, "Uid of a Job that a tenant submitted.", lambda entry: entry.id if entry.kind == "job" else None
    ]
    name: str
    project: str
    offering: Annotated[str, "Of a Job once Kueue has chosen its flavor."]
    count: Annotated[int, "Slices, of a custom claim its devices; or GPU resources of all pods of a Job."]
    requests: Annotated[Mapping[str, int], "Slices by offering; of a Job by resource."]
    priority: Annotated[str, "A number if the priority has no name."]
    state: Annotated[str, FieldInfo("Phase of an allocation, state of a Job.", choices=tuple(STATES))]
    reason: str
    message: str
    hint: Annotated[str, "What to do about it; may be empty."]


@dataclass(frozen=True)
class AheadOut:
    count: Annotated[int, attrgetter("entries")]
    requests: Mapping[str, int]


@dataclass(frozen=True)
class PendingOut:
    """What is read from a position, an entry, and what is ahead of it."""

    entry: Annotated[QueueEntryOut, INLINE, itemgetter(1)]
    position: Annotated[int, "From 1.", lambda pending: pending[0].position]
    ahead: Annotated[AheadOut, "The workloads before it in the team's queue, and their total request.", itemgetter(2)]


@dataclass(frozen=True)
class QueueFields:
    """What is read from a ``Queue``."""

    ordered_by: Annotated[
        str, FieldInfo("portal: the portal's own order, while Kueue does not answer.", choices=tuple(ORDERS))
    ]
    waiting: Annotated[int, "How many wait in total."]
    pending: Annotated[Sequence[PendingOut], "Those from place `pending_from` on, at most `limit`."]
    holding: Annotated[
        Sequence[QueueEntryOut],
        "Workloads with quota of the team: allocations and tenants' own Jobs.",
        attrgetter("admitted"),
    ]
    others_waiting: Annotated[int, "In the queues of other teams in the same tree of departments."]


@dataclass(frozen=True)
class QueueOut:
    team: str
    queue: Annotated[QueueFields, INLINE]
    pending_next: Annotated[str | None, "The page with those that follow in `pending`.", partial(URLField)]
    holding_next: Annotated[str | None, "The page with those that follow in `holding`.", partial(URLField)]
    reserving: Annotated[int, "Workloads with quota reserved, tenants' own Jobs too."]
    admitted: int
    borrowed: Annotated[int, "Whole units of all pools; by pool in `lending`."]
    lent: int
    lending: Annotated[Sequence[TeamBalance], partial(output_of(TeamBalance, "SideOut"), many=True)]


@dataclass(frozen=True)
class LoadOut:
    team: str
    load: Annotated[Load, INLINE]


@extend_schema(responses=page_schema(output_of(LoadOut)))
@api_view(["GET"])
def queues(request: Request) -> Response:
    """List the queues of the teams the caller may see, as counts."""

    def render(teams: list[Team]) -> list[dict[str, Any]]:
        return [document(LoadOut(*each)) for each in team_queue.loads(teams).items()]

    return page(request, access.visible_teams(current_user(request)), render, "slug")


FIRST = (1, 1_000_000)
LIMIT = (team_queue.PAGE_SIZE, MAX_PAGE_SIZE)


@extend_schema(
    parameters=[
        OpenApiParameter("pending_from", OpenApiTypes.INT, description="First place in `pending`, from 1."),
        OpenApiParameter("holding_from", OpenApiTypes.INT, description="First place in `holding`, from 1."),
        OpenApiParameter("limit", OpenApiTypes.INT, description=f"Entries of each list, 1 to {MAX_PAGE_SIZE}."),
    ],
    responses=output_of(QueueOut),
)
@api_view(["GET"])
def queue(request: Request, slug: str) -> Response:
    """Return one page of the queue of a team the caller may see."""
    team = access.team_for(current_user(request), slug)
    pending_from = query_whole(request, "pending_from", *FIRST)
    holding_from = query_whole(request, "holding_from", *FIRST)
    size = query_whole(request, "limit", *LIMIT)
    found = team_queue.of_team(team, pending_from=pending_from, holding_from=holding_from, size=size)
    load = team_queue.loads([team])[team.slug]
    sides = lending.of_team(team)
    shown = {
        "team": team.slug,
        "pending_next": _next(request, "pending_from", pending_from + size, found.waiting),
        "holding_next": _next(request, "holding_from", holding_from + size, found.holding),
        "reserving": load.reserving,
        "admitted": load.admitted,
        "borrowed": int(sum(side.borrowed for side in sides)),
        "lent": int(sum(side.lent for side in sides)),
        "lending": documents(sides, TeamBalance),
    }
    return Response(document(found, QueueFields) | shown)


def _next(request: Request, name: str, first: int, count: int) -> str | None:
    """Return the URL of the request with that list from ``first`` on; None if the list ends before."""
    return str(replace_query_param(request.build_absolute_uri(), name, first)) if first <= count else None


urlpatterns = [
    path("queues", queues),
    path("queues/<str:slug>", queue),
]
