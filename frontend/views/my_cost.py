"""Costs beside what they are of: a person's, a team's and a project's month, and an allocation or a Job by day.

Each is a page of its own, and for htmx the part that other pages load after they are shown.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.queues import jobs
from allocations.requests import cost_forecast, details, selectors
from allocations.requests.costs_at_end import costs_at_end
from frontend.menu import COSTS, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters import my_cost as shown
from frontend.presenters.allocations import cards
from frontend.presenters.costs_address import CostsAddress, curl
from frontend.presenters.costs_filters import narrowed
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from quotas.costs import windows
from quotas.costs.answers import answer
from quotas.costs.calendar import ONE_DAY, Calendar
from quotas.costs.columns import ALL
from quotas.costs.filters import EVERYTHING, as_filter
from quotas.costs.holder_costs import of_holder, visible_intervals
from quotas.costs.questions import Question, asked_by
from quotas.costs.rating import Window
from quotas.costs.steps import Step

MAX_DAYS = 31
MONTH = "month"


@require_safe
@page
def mine(request: PageRequest) -> HttpResponse:
    """Show the person's month, and what runs now with its cost at its end."""
    now = clock.now()
    rows = list(selectors.listed(request.user).filter(requested_by=request.user, ended_at=None, held_at__isnull=False))
    found = cards(rows, details.by_id(rows), {}, access.permissions_of(request.user), now)
    at_end = costs_at_end(visible_intervals(request.user, [row.pk for row in rows], now), now)
    context = {
        "title": "My costs",
        "month": _month(_of_month(request, {"member": request.user.username}, now)),
        "running": shown.running(found, at_end),
        "more_url": _costs_url({"window": MONTH, "aggregate": "allocation"}, {"member": request.user.username}),
        **_rest({"member": request.user.username}, "allocation"),
    }
    return show(request, "frontend/my_cost.html", context, partial="part")


@require_safe
@page
def team(request: PageRequest, slug: str) -> HttpResponse:
    row = access.team_for(request.user, slug)
    back = reverse("team", args=[row.slug])
    return _scope(request, {"team": row.slug}, {"title": f"Cost of team {row.slug}", "back": back, "name": row.slug})


@require_safe
@page
def project(request: PageRequest, slug: str) -> HttpResponse:
    row = access.project_for(request.user, slug)
    back = reverse("team", args=[row.team.slug])
    words = {"title": f"Cost of project {row.slug}", "back": back, "name": f"Team {row.team.slug}"}
    return _scope(request, {"project": row.slug}, words)


@require_safe
@page
def allocation(request: PageRequest, id_: UUID) -> HttpResponse:
    row = selectors.get(request.user, id_)
    back = reverse("allocation", args=[row.pk])
    context = {"title": f"Cost of {row.name}", "back": back, "name": row.name, "is_job": False}
    return _holder(request, id_, row.created_at, context)


@require_safe
@page
def job(request: PageRequest, uid: UUID) -> HttpResponse:
    row = jobs.visible(request.user, uid)
    if row is None:
        raise NotVisible("The Job")
    back = reverse("job", args=[row.uid])
    context = {"title": f"Cost of {row.name}", "back": back, "name": row.name, "is_job": True}
    return _holder(request, uid, row.created_at, context)


def _scope(request: PageRequest, named: Mapping[str, str], context: Mapping[str, Any]) -> HttpResponse:
    """Show the month of a team or a project, by person and by offering."""
    question = _of_month(request, named, clock.now())
    tables = [
        (
            shown.cost_lines(key, answer(replace(question, keys=(key,))), partial(_parts_url, named, key)),
            _costs_url({"window": MONTH, "aggregate": key}, named),
        )
        for key in ("member", "offering")
    ]
    found = {"month": _month(question), "tables": tables, **_rest(named, "member,offering"), **context}
    return show(request, "frontend/my_cost.html", found, partial="part")


def _of_month(request: PageRequest, named: Mapping[str, str], now: datetime) -> Question:
    """Return the question what the present month of what is named costs in all."""
    calendar = _calendar()
    question = Question(windows.parse(MONTH, now, calendar), now, keys=(ALL,), calendar=calendar)
    return cost_forecast.visible(request.user, question, named)


def _month(question: Question) -> shown.MonthCost:
    return shown.month_cost(answer(question), cost_forecast.in_window(question), question.calendar)


def _holder(request: PageRequest, id_: UUID, created: datetime, context: Mapping[str, Any]) -> HttpResponse:
    """Show the cost of an allocation or a Job by day, and what of it no pod used."""
    now, calendar = clock.now(), _calendar()
    charged = of_holder(request.user, id_, now, calendar)
    begin = charged.intervals[0].row.start if charged.intervals else created
    since = max(begin, calendar.start_of(calendar.day_of(now) - (MAX_DAYS - 1) * ONE_DAY))
    window = Window(since, max(now, since + timedelta(microseconds=1)))
    where = as_filter({"allocation": [str(id_)]})
    question = Question(window, now, keys=("allocation",), where=where, step=Step.DAY, calendar=calendar)
    costs = answer(asked_by(request.user, question))
    query = {"window": f"{_stamp(begin)},{_stamp(now)}", "accumulate": "day", "timezone": str(calendar.zone)}
    found = {
        "by_day": shown.day_costs(costs, calendar, charged.unused_by_day),
        "currency": charged.currency,
        "unused": shown.unused(charged),
        "is_use_recorded": charged.unused is not None,
        "is_part": since > begin,
        "max_days": MAX_DAYS,
        "csv_url": "/api/v1/costs/export?"
        + urlencode({**query, "aggregate": "allocation", "filter": f'allocation:"{id_}"'}),
        "evidence_url": f"/api/v1/costs/allocations/{id_}?{urlencode({'timezone': str(calendar.zone)})}",
        "intervals_url": reverse("costs-allocation", args=[id_]) if charged.intervals else "",
        **context,
    }
    return show(request, "frontend/cost_by_day.html", found, partial="part")


def _calendar() -> Calendar:
    """Return the calendar of the reader's time zone."""
    return Calendar(timezone.get_current_timezone())


def _parts_url(named: Mapping[str, str], key: str, name: str) -> str:
    """Return the address of the allocations that a row of a table by ``key`` is made of."""
    return _costs_url({"window": MONTH, "aggregate": "allocation"}, {**named, key: name})


def _costs_url(query: Mapping[str, str], named: Mapping[str, str]) -> str:
    """Return the address of the page of costs with these parameters of REST, filtered by what is named; empty if no
    filter can have a name.
    """
    try:
        where = narrowed(EVERYTHING, list(named.items()))
    except ValueError:  # a quotation mark in a name
        return ""
    return f"{reverse('costs')}?{urlencode({**query, 'filter': where})}"


def _rest(named: Mapping[str, str], by: str) -> dict[str, str]:
    """Return the request of REST for the month of what is named, and its address as CSV; nothing if no filter can have
    a name.
    """
    try:
        where = narrowed(EVERYTHING, list(named.items()))
    except ValueError:  # a quotation mark in a name
        return {}
    asked = {"window": MONTH, "timezone": timezone.get_current_timezone_name(), "aggregate": by, "filter": where}
    address = CostsAddress(asked)
    return {"curl": curl(address.rest()), "csv": address.rest("/export")}


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


urlpatterns = [
    path("costs/mine", mine, name="my-cost"),
    path("teams/<str:slug>/costs", team, name="team-cost"),
    path("projects/<str:slug>/costs", project, name="project-cost"),
    path("allocations/<uuid:id_>/costs", allocation, name="allocation-cost"),
    path("jobs/<uuid:uid>/costs", job, name="job-cost"),
]
DOCS = "how-to/costs"
MENU = {"my-cost": Item(COSTS, 20, "My costs", is_for_all=True)}
