"""Jobs that tenants submit to a queue: state, reason and cost."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.queues import job_refusals
from allocations.queues import jobs as found
from allocations.queues import queue as team_queue
from allocations.queues.jobs import Job
from allocations.queues.queue import QueuePosition
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import query_values
from portal.api.schemas import label_filter
from portal.api.schemas.allocation_output import QueuePositionOut
from portal.api.schemas.cost_output import COST_HELP, UNPRICED_HELP, cost_to_date
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.outputs import output_of
from portal.core import clock, money
from portal.core.errors import NotVisible
from portal.tenants import access
from quotas.costs import selectors as costs

STATES = [state.value for state in found.State]


class JobCostOut(serializers.Serializer):
    to_date = DecimalText(allow_null=True, help_text=COST_HELP)
    unpriced_gpu_hours = DecimalText(help_text=UNPRICED_HELP)
    currency = serializers.CharField()


class JobHoursOut(serializers.Serializer):
    reserved = DecimalText(help_text="From admission until Kueue released the quota: what is charged.")
    used = DecimalText(help_text="The part that its pods used.")


class JobPodsOut(serializers.Serializer):
    requested = serializers.IntegerField(help_text="How many it wants at once.")
    admitted = serializers.IntegerField(help_text="For how many it has quota; fewer by partial admission, 0 before.")


class JobOut(serializers.Serializer):
    uid = serializers.UUIDField(help_text="The Job's uid on the cluster; `allocation` in costs.")
    name = serializers.CharField()
    project = serializers.CharField()
    team = serializers.CharField()
    namespace = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    reason = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField(allow_blank=True, help_text="What to do about it; may be empty.")
    queue = output_of(QueuePositionOut)(allow_null=True)
    gpus = serializers.IntegerField(help_text="Device plugin resources of all its pods.")
    requests = serializers.DictField(child=serializers.IntegerField(), help_text="By resource.")
    pods = JobPodsOut(allow_null=True, help_text="Null after an upgrade until its Workload is observed again.")
    offering = serializers.CharField(allow_blank=True, help_text="Known once Kueue has chosen its flavor.")
    priority = serializers.IntegerField()
    labels = serializers.DictField(
        child=serializers.CharField(allow_blank=True), help_text="Of its pods, by which costs are grouped."
    )
    created_at = serializers.DateTimeField()
    gpu_hours = JobHoursOut(help_text="To date, in whole GPUs.")
    cost = JobCostOut()


class OneJobOut(JobOut):
    refusals = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Why pods were refused; null when not known now."
    )


@extend_schema(
    parameters=[
        *(OpenApiParameter(name, OpenApiTypes.STR, description="Several with commas.") for name in ("project", "team")),
        label_filter.PARAMETER,
    ],
    responses=page_schema(JobOut),
)
@api_view(["GET"])
def jobs(request: Request) -> Response:
    """List the queued Jobs of all projects the caller may see, newest first; ended ones as long as they exist."""
    projects = access.visible_projects(current_user(request))
    if wanted := query_values(request, "project"):
        projects = projects.filter(slug__in=wanted)
    if wanted := query_values(request, "team"):
        projects = projects.filter(team__slug__in=wanted)
    rows = found.rows(projects)
    if labels := label_filter.labels(request):
        rows = rows.filter(facts__labels__contains=labels.to_json())
    newest = (f"-{name}" for name in found.ORDER)
    return page(request, rows, lambda seen: _many(job_refusals.with_refusals(found.read(seen))), *newest)


@extend_schema(responses=OneJobOut)
@api_view(["GET"])
def job(request: Request, uid: UUID) -> Response:
    """Return one Job, with its position as Kueue reports it, and why its pods were refused."""
    one = found.visible(current_user(request), uid)
    if one is None:
        raise NotVisible("The Job", hint="GET /jobs lists those of your projects.")
    [row] = _many(job_refusals.with_refusals([one]), {uid: place} if (place := team_queue.position(one)) else {})
    return Response(row | {"refusals": job_refusals.of_job(one)})


def _many(rows: Collection[Job], places: dict[UUID, QueuePosition] | None = None) -> list[dict[str, Any]]:
    charges = costs.charges_to_date([row.uid for row in rows], clock.now())
    places, currency = team_queue.positions(rows) if places is None else places, costs.currency()
    return [
        {
            "uid": row.uid,
            "name": row.name,
            "project": row.project.slug,
            "team": row.project.team.slug,
            "namespace": row.project.namespace,
            "state": row.state.value,
            "reason": row.reason,
            "message": row.message,
            "hint": row.hint,
            "queue": places[row.uid]._asdict() if row.uid in places else None,
            "gpus": row.gpus,
            "requests": row.requests,
            "pods": dict(row.pods) or None,
            "offering": row.offering,
            "priority": row.priority,
            "labels": row.labels,
            "created_at": row.created_at,
            "gpu_hours": {
                "reserved": money.text(charges[row.uid].reserved, money.HOURS_PLACES),
                "used": money.text(charges[row.uid].used, money.HOURS_PLACES),
            },
            "cost": cost_to_date(charges[row.uid], currency),
        }
        for row in rows
    ]


urlpatterns = [
    path("jobs", jobs),
    path("jobs/<uuid:uid>", job),
]
