"""A team's queue: who waits in which place, and how much of the queue is taken."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from allocations import queueing
from portal.api.auth import person
from portal.core.errors import NotVisible
from portal.tenants import access


class PendingOut(serializers.Serializer):
    allocation = serializers.UUIDField()
    position = serializers.IntegerField(help_text="From 1.")
    reason = serializers.CharField()
    message = serializers.CharField()
    name = serializers.CharField()
    project = serializers.CharField()
    offering = serializers.CharField()
    count = serializers.IntegerField()
    priority = serializers.CharField()


class QueueOut(serializers.Serializer):
    team = serializers.CharField()
    pending = PendingOut(many=True)
    reserving = serializers.IntegerField(help_text="Workloads with quota reserved, tenants' own Jobs too.")
    admitted = serializers.IntegerField()
    borrowed = serializers.IntegerField(help_text="Slices; teams do not lend yet.")
    lent = serializers.IntegerField()


@extend_schema(responses=QueueOut)
@api_view(["GET"])
def queue(request: Request, slug: str) -> Response:
    """The queue of a team the caller sees."""
    team = None if "\x00" in slug else access.visible_teams(person(request)).filter(slug=slug).first()
    if team is None:
        raise NotVisible(f"The team {slug}", hint="GET /me lists your teams.")
    load = queueing.load(team)
    pending = [
        {**vars(waiting), "position": position} for position, waiting in enumerate(queueing.pending(team), start=1)
    ]
    return Response(
        {
            "team": team.slug,
            "pending": pending,
            "reserving": load.reserving,
            "admitted": load.admitted,
            "borrowed": 0,
            "lent": 0,
        }
    )
