"""A team's queue, and the page of one Job."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from allocations.domain.allocation_spec import Labels
from allocations.limits.services import text
from allocations.queues import job_refusals, jobs, lending
from allocations.queues import queue as team_queue
from frontend.pages import PageRequest, page, show
from frontend.presenters import queues as shown
from frontend.presenters.amounts import cost, number
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from quotas.costs import selectors as costs

MAX_DIGITS = 7


@require_safe
@page
def queue(request: PageRequest, slug: str) -> HttpResponse:
    """Show waiting entries with position, reason and hint, and entries that have quota of the team."""
    team = access.team_for(request.user, slug)
    pending_from, holding_from = _start(request, "waiting"), _start(request, "holding")
    found = team_queue.of_team(team, pending_from=pending_from, holding_from=holding_from)
    context = {
        "team": team,
        "waiting": [shown.line(entry, place, ahead) for place, entry, ahead in found.pending],
        "holding": [shown.line(entry) for entry in found.admitted],
        "waiting_page": _page(found.waiting, pending_from, f"holding={holding_from}&waiting="),
        "holding_page": _page(found.holding, holding_from, f"waiting={pending_from}&holding="),
        "here": f"waiting={pending_from}&holding={holding_from}",
        "by_kueue": found.ordered_by == "kueue",
        "others_waiting": found.others_waiting,
        "sides": [(side.pool, text(side.borrowed), text(side.lent)) for side in lending.of_team(team)],
    }
    return show(request, "frontend/queue.html", context, partial="rows")


@dataclass(frozen=True)
class PageRange:
    """Which entries of how many are shown; ``previous`` and ``next`` are queries of the adjacent pages, or empty."""

    first: int
    last: int
    of: int
    previous: str
    next: str

    @property
    def is_part(self) -> bool:
        return self.first > 1 or self.last < self.of


def _page(of: int, first: int, query: str) -> PageRange:
    last = min(of, first + team_queue.PAGE_SIZE - 1)
    return PageRange(
        first=first,
        last=last,
        of=of,
        previous=f"?{query}{max(1, first - team_queue.PAGE_SIZE)}" if first > 1 else "",
        next=f"?{query}{last + 1}" if last < of else "",
    )


def _start(request: PageRequest, name: str) -> int:
    """Return the position from which the address requests that list, from 1; 1 if it is invalid."""
    raw = request.GET.get(name, "")
    return max(1, int(raw)) if raw.isdecimal() and len(raw) < MAX_DIGITS else 1


@require_safe
@page
def job(request: PageRequest, uid: UUID) -> HttpResponse:
    """Show the Job's position, and why the guards refused its pods."""
    found = jobs.visible(request.user, uid)
    if found is None:
        raise NotVisible("The Job")
    charge = costs.charges_to_date([uid], clock.now())[uid]
    context = {
        "job": job_refusals.with_refusals([found])[0],
        "badge": shown.JOB_BADGES[found.state],
        "requests": shown.requests(found.requests),
        "place": team_queue.position(found),
        "refusals": job_refusals.of_job(found),
        "labels": str(Labels.from_json(found.labels)),
        "reserved": number(charge.reserved),
        "used": number(charge.used),
        "cost": cost(charge, costs.currency()),
        "is_priced": charge.cost is not None,
        "is_final": found.state in jobs.ENDED,
    }
    return show(request, "frontend/job.html", context, partial="rows")


urlpatterns = [
    path("jobs/<uuid:uid>", job, name="job"),
    path("queues/<str:slug>", queue, name="queue"),
]
DOCS = "how-to/jobs"
DOCS_OF = {"queue": "how-to/waiting"}
