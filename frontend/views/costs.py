"""Usage and cost, aggregated as the reader chooses."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from allocations.queues import jobs
from allocations.requests import selectors
from frontend.pages import PageRequest, page, show
from frontend.presenters import fleet_hours
from frontend.presenters.amounts import NOT_PRICED
from frontend.presenters.balance import balance
from frontend.presenters.costs import billed_line, outage_line, table
from frontend.presenters.simulated_history import simulated_line
from portal.core import clock
from portal.core.errors import Invalid
from portal.tenants import access
from quotas.costs import windows
from quotas.costs.cost_rows import Costs
from quotas.costs.outages import visible_share
from quotas.costs.selectors import visible_costs
from quotas.metering.fleet_hours import by_flavor_and_day
from quotas.metering.hours import DAY

WINDOWS = {
    "today": "today",
    "yesterday": "yesterday",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "lastweek": "last week",
    "month": "this month",
    "lastmonth": "last month",
}
KEYS = ("project", "team", "member", "offering", "flavor", "kind", "department", "node", "allocation")
FLEET_DAYS = 31
"""The most days of which the GPU-hours of the fleet are shown: each is a row for each flavor."""
UNKNOWN = {
    "node": "no node: counted by a device plugin",
    "member": "not known: Jobs submitted with kubectl name nobody",
}


@require_safe
@page
def costs(request: PageRequest) -> HttpResponse:
    """Show usage and cost of all teams the person may see, and to platform staff the fleet's GPU-hours and balance.

    The address takes any window and key of REST.
    """
    window = request.GET.get("window") or "7d"
    aggregate = request.GET.get("aggregate") or "project"
    context: dict[str, object] = {
        "window": window,
        "aggregate": aggregate,
        "keys": KEYS,
        "problem": None,
        "fleet_lines": None,
        "not_priced": NOT_PRICED,
    }
    context["windows"] = WINDOWS if window in WINDOWS else {**WINDOWS, window: window}
    now = clock.now()
    try:
        span = windows.parse(window, now)
        found = visible_costs(request.user, span, [aggregate])
    except Invalid as problem:
        context |= {"problem": problem, "table": None}
        return show(request, "frontend/costs.html", context, status=problem.status)
    context["table"] = table(found, _names(request, aggregate, found))
    context["billed"] = billed_line(found)
    context["simulated"] = simulated_line(span.start)
    context["outages"] = outage_line(visible_share(request.user, span), found.currency)
    if access.sees_all(request.user):
        end = max(span.start, min(span.end, now))
        is_too_long = end - span.start > FLEET_DAYS * DAY
        context |= {"fleet_days": FLEET_DAYS, "fleet_is_too_long": is_too_long, "balance": balance()}
        hours = None if is_too_long else by_flavor_and_day(span.start, end)
        context["fleet_lines"] = None if hours is None else fleet_hours.lines(hours)
        context["stranded"] = fleet_hours.stranded(hours or ())
        context["capacity_since"] = fleet_hours.recorded_since(span.start)
    return show(request, "frontend/costs.html", context)


def _names(request: PageRequest, aggregate: str, found: Costs) -> dict[str, tuple[str, str]]:
    if aggregate == "allocation":
        ids = [row.name for row in found.rows]
        rows = selectors.visible(request.user).filter(pk__in=ids)
        own = jobs.read(jobs.rows(access.visible_projects(request.user)).filter(facts__job__uid__in=ids))
        return {
            **{id_: (f"Job {id_}, deleted", "") for id_ in ids},
            **{str(row.pk): (f"{row.project.slug} / {row.name}", reverse("allocation", args=[row.pk])) for row in rows},
            **{str(one.uid): (f"{one.project.slug} / Job {one.name}", reverse("job", args=[one.uid])) for one in own},
        }
    return {"__unallocated__": (UNKNOWN.get(aggregate, "not known"), "")}
