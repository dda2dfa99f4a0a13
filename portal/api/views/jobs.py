"""Jobs that tenants submit to a queue: state, reason and cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.models import MirrorObject
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
from portal.api.schemas.allocation_output import JobCostOut
from portal.api.schemas.outputs import INLINE, document, documents, output_of
from portal.core import clock
from portal.core.errors import NotVisible
from portal.core.money import Hours
from portal.tenants import access
from quotas.costs import selectors as costs
from quotas.costs.selectors import Charge

STATES = [state.value for state in found.State]


class ShownJob(NamedTuple):
    """A Job with its position and its charge."""

    job: Job
    queue: QueuePosition | None
    charge: Charge
    currency: str


@dataclass(frozen=True)
class JobHoursOut:
    reserved: Annotated[Hours, "From admission until Kueue released the quota: what is charged."]
    used: Annotated[Hours, "The part that its pods used."]


@dataclass(frozen=True)
class JobPodsOut:
    requested: Annotated[int, "How many it wants at once.", itemgetter("requested")]
    admitted: Annotated[int, "For how many it has quota; fewer by partial admission, 0 before.", itemgetter("admitted")]


@dataclass(frozen=True)
class JobFields:
    uid: Annotated[UUID, "The Job's uid on the cluster; `allocation` in costs."]
    name: str
    project: Annotated[str, attrgetter("project.slug")]
    team: Annotated[str, attrgetter("project.team.slug")]
    namespace: Annotated[str, attrgetter("project.namespace")]
    state: found.State
    reason: str
    message: str
    hint: Annotated[str, "What to do about it; may be empty."]
    gpus: Annotated[int, "Device plugin resources of all its pods."]
    requests: Annotated[Mapping[str, int], "By resource."]
    pods: Annotated[
        JobPodsOut | None,
        "Null after an upgrade until its Workload is observed again.",
        lambda job: job.pods or None,
    ]
    offering: Annotated[str, "Known once Kueue has chosen its flavor."]
    priority: int
    labels: Annotated[Mapping[str, str], "Of its pods, by which costs are grouped."]
    created_at: datetime


@dataclass(frozen=True)
class JobOut:
    job: Annotated[JobFields, INLINE]
    queue: QueuePosition | None
    gpu_hours: Annotated[JobHoursOut, "To date, in whole GPUs.", attrgetter("charge")]
    cost: Annotated[JobCostOut, lambda shown: JobCostOut(shown.charge.cost, shown.charge.unpriced, shown.currency)]


@dataclass(frozen=True)
class OneJobOut(JobOut):
    refusals: Annotated[
        Sequence[str] | None,
        "Why pods were refused; null when not known now.",
        lambda shown: job_refusals.of_job(shown.job),
    ]


@extend_schema(
    parameters=[
        *(OpenApiParameter(name, OpenApiTypes.STR, description="Several with commas.") for name in ("project", "team")),
        label_filter.PARAMETER,
    ],
    responses=page_schema(output_of(JobOut)),
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

    def render(seen: list[MirrorObject]) -> list[dict[str, Any]]:
        listed = job_refusals.with_refusals(found.read(seen))
        return documents(_shown(listed, team_queue.positions(listed)), JobOut)

    return page(request, rows, render, *(f"-{name}" for name in found.ORDER))


@extend_schema(responses=output_of(OneJobOut))
@api_view(["GET"])
def job(request: Request, uid: UUID) -> Response:
    """Return one Job, with its position as Kueue reports it, and why its pods were refused."""
    one = found.visible(current_user(request), uid)
    if one is None:
        raise NotVisible("The Job", hint="GET /jobs lists those of your projects.")
    place = team_queue.position(one)
    [shown] = _shown(job_refusals.with_refusals([one]), {uid: place} if place else {})
    return Response(document(shown, OneJobOut))


def _shown(rows: Collection[Job], places: Mapping[UUID, QueuePosition]) -> list[ShownJob]:
    charges, currency = costs.charges_to_date([row.uid for row in rows], clock.now()), costs.currency()
    return [ShownJob(row, places.get(row.uid), charges[row.uid], currency) for row in rows]


urlpatterns = [
    path("jobs", jobs),
    path("jobs/<uuid:uid>", job),
]
