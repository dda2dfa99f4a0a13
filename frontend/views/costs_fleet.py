"""The GPU-hours of the fleet by flavor and day of the reader's time zone."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.menu import USAGE, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters import fleet_hours
from frontend.presenters.costs_address import REST, curl
from frontend.presenters.costs_form import with_chosen
from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.tenants import access
from portal.tenants.access import Person
from quotas.costs import steps, windows
from quotas.costs.calendar import Calendar
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering.fleet_hours import by_flavor_and_day
from quotas.metering.hours import DAY

MAX_DAYS = 31
"""The most days that are shown: each is a row for each flavor."""
WINDOWS = {
    "today": "today",
    "yesterday": "yesterday",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "month": "this month",
    "lastmonth": "last month",
}
"""None of them is longer."""


@require_safe
@page
def fleet(request: PageRequest) -> HttpResponse:
    """Show the fleet's GPU-hours, for operators and auditors. The address takes any window of REST."""
    refuse_others_than_staff(request.user)
    window, now, calendar = request.GET.get("window") or "7d", clock.now(), Calendar(timezone.get_current_timezone())
    context: dict[str, object] = {
        "window": window,
        "windows": with_chosen(window, WINDOWS),
        "problem": None,
    }
    try:
        span = windows.parse(window, now, calendar)
    except Invalid as problem:
        return show(request, "frontend/costs_fleet.html", context | {"problem": problem}, status=problem.status)
    end = max(span.start, min(span.end, now))
    is_too_long = end - span.start > MAX_DAYS * DAY
    hours = None if is_too_long else by_flavor_and_day(span.start, end, _days(span.start, end, calendar))
    context |= {
        "start": span.start,
        "end": span.end,
        "fleet_days": MAX_DAYS,
        "fleet_is_too_long": is_too_long,
        "fleet_lines": None if hours is None else fleet_hours.lines(hours),
        "stranded": fleet_hours.stranded(hours or ()),
        "capacity_since": fleet_hours.recorded_since(span.start),
        "titles": fleet_hours.TITLES,
        "curl": curl(f"{REST}/assets?{urlencode({'window': window, 'timezone': str(calendar.zone)})}"),
    }
    return show(request, "frontend/costs_fleet.html", context)


def refuse_others_than_staff(user: Person) -> None:
    """Raise Forbidden unless the person sees the whole fleet."""
    if not access.sees_all(user):
        raise Forbidden(
            "auditor",
            detail="This page shows the use of all teams. Operators and auditors can see it.",
            hint="The costs of your teams are on the page Costs.",
        )


def _days(start: datetime, end: datetime, calendar: Calendar) -> Sequence[datetime]:
    """Return the bounds of the time and the midnights between them; none of a time that has not begun."""
    return steps.edges(Window(start, end), Step.DAY, calendar) if start < end else ()


urlpatterns = [
    path("costs/fleet", fleet, name="costs-fleet"),
]
DOCS = "concepts/capacity"
MENU = {"costs-fleet": Item(USAGE, 20, "Capacity")}
