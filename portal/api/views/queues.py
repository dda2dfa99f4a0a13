"""A team's queue: waiting and admitted entries, with positions and reasons, and how much is lent."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from allocations.queues import lending
from allocations.queues import queue as team_queue
from allocations.queues.entries import Entry
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import MAX_PAGE_SIZE, page, page_schema
from portal.api.http.strict import query_whole
from portal.api.schemas.allocation_output import PHASES
from portal.api.schemas.decimal_text import DecimalText
from portal.api.views.jobs import STATES as JOB_STATES
from portal.api.views.lending import document
from portal.tenants import access
from portal.tenants.models import Team

KINDS, ORDERS = ["allocation", "job"], ["portal", "kueue"]
STATES = list(dict.fromkeys([*PHASES, *JOB_STATES]))


class QueueEntryOut(serializers.Serializer):
    kind = serializers.ChoiceField(KINDS)
    allocation = serializers.UUIDField(allow_null=True)
    job = serializers.UUIDField(allow_null=True, help_text="Uid of a Job that a tenant submitted.")
    name = serializers.CharField()
    project = serializers.CharField()
    offering = serializers.CharField(allow_blank=True, help_text="Of a Job once Kueue has chosen its flavor.")
    count = serializers.IntegerField(
        help_text="Slices, of a custom claim its devices; or GPU resources of all pods of a Job."
    )
    requests = serializers.DictField(
        child=serializers.IntegerField(), help_text="Slices by offering; of a Job by resource."
    )
    priority = serializers.CharField(help_text="A number if the priority has no name.")
    state = serializers.ChoiceField(STATES, help_text="Phase of an allocation, state of a Job.")
    reason = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True, help_text="What to do about it; may be empty.")


class AheadOut(serializers.Serializer):
    count = serializers.IntegerField()
    requests = serializers.DictField(child=serializers.IntegerField())


class PendingOut(QueueEntryOut):
    position = serializers.IntegerField(help_text="From 1.")
    ahead = AheadOut(help_text="The workloads before it in the team's queue, and their total request.")


class SideOut(serializers.Serializer):
    pool = serializers.CharField()
    borrowed = DecimalText()
    lent = DecimalText()


class QueueOut(serializers.Serializer):
    team = serializers.CharField()
    ordered_by = serializers.ChoiceField(
        ORDERS, help_text="portal: the portal's own order, while Kueue does not answer."
    )
    waiting = serializers.IntegerField(help_text="How many wait in total.")
    pending = PendingOut(many=True, help_text="Those from place `pending_from` on, at most `limit`.")
    pending_next = serializers.URLField(allow_null=True, help_text="The page with those that follow in `pending`.")
    holding = QueueEntryOut(many=True, help_text="Workloads with quota of the team: allocations and tenants' own Jobs.")
    holding_next = serializers.URLField(allow_null=True, help_text="The page with those that follow in `holding`.")
    reserving = serializers.IntegerField(help_text="Workloads with quota reserved, tenants' own Jobs too.")
    admitted = serializers.IntegerField()
    others_waiting = serializers.IntegerField(help_text="In the queues of other teams in the same tree of departments.")
    borrowed = serializers.IntegerField(help_text="Whole units of all pools; by pool in `lending`.")
    lent = serializers.IntegerField()
    lending = SideOut(many=True)


class LoadOut(serializers.Serializer):
    team = serializers.CharField()
    pending = serializers.IntegerField(help_text="Workloads that wait, as Kueue counts them: tenants' own Jobs too.")
    reserving = serializers.IntegerField(help_text="Workloads with quota reserved.")
    admitted = serializers.IntegerField()


@extend_schema(responses=page_schema(LoadOut))
@api_view(["GET"])
def queues(request: Request) -> Response:
    """List the queues of the teams the caller may see, as counts."""

    def render(teams: list[Team]) -> list[dict[str, Any]]:
        return [{"team": slug, **load._asdict()} for slug, load in team_queue.loads(teams).items()]

    return page(request, access.visible_teams(current_user(request)), render, "slug")


FIRST = (1, 1_000_000)
LIMIT = (team_queue.PAGE_SIZE, MAX_PAGE_SIZE)


@extend_schema(
    parameters=[
        OpenApiParameter("pending_from", OpenApiTypes.INT, description="First place in `pending`, from 1."),
        OpenApiParameter("holding_from", OpenApiTypes.INT, description="First place in `holding`, from 1."),
        OpenApiParameter("limit", OpenApiTypes.INT, description=f"Entries of each list, 1 to {MAX_PAGE_SIZE}."),
    ],
    responses=QueueOut,
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
    pending = [
        {**_entry(entry), "position": place.position, "ahead": {"count": ahead.entries, "requests": ahead.requests}}
        for place, entry, ahead in found.pending
    ]
    sides = lending.of_team(team)
    return Response(
        {
            "team": team.slug,
            "ordered_by": found.ordered_by,
            "waiting": found.waiting,
            "pending": pending,
            "pending_next": _next(request, "pending_from", pending_from + size, found.waiting),
            "holding": [_entry(entry) for entry in found.admitted],
            "holding_next": _next(request, "holding_from", holding_from + size, found.holding),
            "reserving": load.reserving,
            "admitted": load.admitted,
            "others_waiting": found.others_waiting,
            "borrowed": int(sum(side.borrowed for side in sides)),
            "lent": int(sum(side.lent for side in sides)),
            "lending": [document(side) for side in sides],
        }
    )


def _next(request: Request, name: str, first: int, count: int) -> str | None:
    """Return the URL of the request with that list from ``first`` on; None if the list ends before."""
    return str(replace_query_param(request.build_absolute_uri(), name, first)) if first <= count else None


def _entry(entry: Entry) -> dict[str, Any]:
    shown = (
        "kind",
        "name",
        "project",
        "offering",
        "count",
        "requests",
        "priority",
        "state",
        "reason",
        "message",
        "hint",
    )
    return {
        "allocation": entry.id if entry.kind == "allocation" else None,
        "job": entry.id if entry.kind == "job" else None,
        **{name: getattr(entry, name) for name in shown},
    }


urlpatterns = [
    path("queues", queues),
    path("queues/<str:slug>", queue),
]
