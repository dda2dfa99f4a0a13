"""A team's queue as people read it, and one Job that a tenant submitted."""

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from allocations import jobs, lending, queueing
from allocations.limiting import text
from frontend.pages import PageRequest, page, show
from frontend.presenters import queues as shown
from frontend.presenters.amounts import hours, money
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from quotas.costs import selectors as costs


@require_safe
@page
def queue(request: PageRequest, slug: str) -> HttpResponse:
    """Who waits in which place, why and what helps; and what has quota of the team."""
    team = access.team_for(request.user, slug)
    found = queueing.of_team(team)
    context = {
        "team": team,
        "waiting": [shown.line(entry, place, ahead) for place, entry, ahead in found.pending],
        "holding": [shown.line(entry) for entry in found.admitted],
        "by_kueue": found.by == "kueue",
        "others_waiting": found.others_waiting,
        "sides": [(side.pool, text(side.borrowed), text(side.lent)) for side in lending.of_team(team)],
    }
    return show(request, "frontend/queue.html", context, partial="rows")


@require_safe
@page
def job(request: PageRequest, uid: UUID) -> HttpResponse:
    """Where the Job stands, and what the guards said of its pods."""
    found = jobs.visible(request.user, uid)
    if found is None:
        raise NotVisible("The Job")
    charge = costs.charges_to_date([uid], clock.now())[uid]
    context = {
        "job": found,
        "look": shown.JOB_LOOKS[found.state],
        "asks": shown.asks(found.asks),
        "place": queueing.place(found),
        "refusals": jobs.refusals(found),
        "reserved": hours(charge.reserved),
        "used": hours(charge.used),
        "cost": money(charge.cost, costs.currency()),
        "is_final": found.state in jobs.ENDED,
    }
    return show(request, "frontend/job.html", context, partial="rows")
