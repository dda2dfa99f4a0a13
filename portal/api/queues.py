"""A team's queue: who waits in which place and why, who has quota of it, and how much is lent."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from allocations import lending, queueing
from allocations.queueing import Entry
from portal.api.auth import person
from portal.api.lending import document
from portal.api.pagination import page, page_of
from portal.tenants import access
from portal.tenants.models import Team


class QueueEntryOut(serializers.Serializer):
    kind = serializers.ChoiceField(choices=["allocation", "job"])
    allocation = serializers.UUIDField(allow_null=True)
    job = serializers.UUIDField(allow_null=True, help_text="Uid of a Job that a tenant submitted.")
    name = serializers.CharField()
    project = serializers.CharField()
    offering = serializers.CharField(allow_blank=True, help_text="Of a Job once Kueue has chosen its flavor.")
    count = serializers.IntegerField(help_text="Slices, or GPU resources of all pods of a Job.")
    asks = serializers.DictField(
        child=serializers.IntegerField(), help_text="Slices by offering; of a Job by resource."
    )
    priority = serializers.CharField(help_text="A number where the priority has no name here.")
    state = serializers.CharField(help_text="Phase of an allocation, state of a Job.")
    reason = serializers.CharField()
    message = serializers.CharField()
    helps = serializers.CharField(allow_blank=True, help_text="What to do about it; empty where nothing is.")


class AheadOut(serializers.Serializer):
    count = serializers.IntegerField()
    asks = serializers.DictField(child=serializers.IntegerField())


class PendingOut(QueueEntryOut):
    position = serializers.IntegerField(help_text="From 1.")
    ahead = AheadOut(help_text="What waits before it in the team's queue, and asks in all.")


class SideOut(serializers.Serializer):
    pool = serializers.CharField()
    borrowed = serializers.CharField()
    lent = serializers.CharField()


class QueueOut(serializers.Serializer):
    team = serializers.CharField()
    ordered_by = serializers.CharField(help_text="kueue, or portal: its own order while Kueue does not answer.")
    pending = PendingOut(many=True)
    holding = QueueEntryOut(many=True, help_text="What has quota of the team: allocations and tenants' own Jobs.")
    reserving = serializers.IntegerField(help_text="Workloads with quota reserved, tenants' own Jobs too.")
    admitted = serializers.IntegerField()
    others_waiting = serializers.IntegerField(help_text="In queues of other teams in the same tree of departments.")
    borrowed = serializers.IntegerField(help_text="Whole units of all pools; by pool in `lending`.")
    lent = serializers.IntegerField()
    lending = SideOut(many=True)


class LoadOut(serializers.Serializer):
    team = serializers.CharField()
    pending = serializers.IntegerField(help_text="Workloads that wait, as Kueue counts them: tenants' own Jobs too.")
    reserving = serializers.IntegerField(help_text="Workloads with quota reserved.")
    admitted = serializers.IntegerField()


@extend_schema(operation_id="queues_list", responses=page_of(LoadOut))
@api_view(["GET"])
def queues(request: Request) -> Response:
    """The queues of the teams the caller sees, in numbers."""

    def render(teams: list[Team]) -> list[dict[str, Any]]:
        return [{"team": slug, **load._asdict()} for slug, load in queueing.loads(teams).items()]

    return page(request, access.visible_teams(person(request)), render, "slug")


@extend_schema(responses=QueueOut)
@api_view(["GET"])
def queue(request: Request, slug: str) -> Response:
    """The queue of a team the caller sees."""
    team = access.team_for(person(request), slug)
    found, load = queueing.of_team(team), queueing.loads([team])[team.slug]
    pending = [
        {**_entry(entry), "position": place.position, "ahead": {"count": ahead.entries, "asks": ahead.asks}}
        for place, entry, ahead in found.pending
    ]
    sides = lending.of_team(team)
    return Response(
        {
            "team": team.slug,
            "ordered_by": found.by,
            "pending": pending,
            "holding": [_entry(entry) for entry in found.admitted],
            "reserving": load.reserving,
            "admitted": load.admitted,
            "others_waiting": found.others_waiting,
            "borrowed": int(sum(side.borrowed for side in sides)),
            "lent": int(sum(side.lent for side in sides)),
            "lending": [document(side) for side in sides],
        }
    )


def _entry(entry: Entry) -> dict[str, Any]:
    shown = ("kind", "name", "project", "offering", "count", "asks", "priority", "state", "reason", "message", "helps")
    return {
        "allocation": entry.id if entry.kind == "allocation" else None,
        "job": entry.id if entry.kind == "job" else None,
        **{name: getattr(entry, name) for name in shown},
    }
