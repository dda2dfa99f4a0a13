"""What could be saved: holds without pods, quiet hours, unused quota, stranded GPUs, and offerings without a price."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.queues import jobs
from allocations.requests import selectors
from frontend.menu import USAGE, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters import savings as presenter
from frontend.presenters.costs_address import REST, curl
from frontend.presenters.costs_form import with_chosen
from portal.core import clock
from portal.core.errors import Invalid
from portal.tenants import access
from quotas.catalog.models import Node
from quotas.costs import windows
from quotas.costs.calendar import Calendar
from quotas.costs.questions import Question, asked_by
from quotas.costs.savings import IDLE_HOURS, MAX_IDLE_HOURS, Savings, possible_savings

WINDOWS = {"7d": "last 7 days", "30d": "last 30 days", "month": "this month", "lastmonth": "last month"}


@require_safe
@page
def savings(request: PageRequest) -> HttpResponse:
    """Show what could be saved of the teams that the person sees, and of the fleet to platform staff. The address takes
    any window of REST.
    """
    window, hours = request.GET.get("window") or "7d", request.GET.get("idle_hours") or str(IDLE_HOURS)
    rest = {"window": window, "idle_hours": hours, "timezone": timezone.get_current_timezone_name()}
    context: dict[str, object] = {
        "window": window,
        "windows": with_chosen(window, WINDOWS),
        "idle_hours": hours,
        "max_idle_hours": MAX_IDLE_HOURS,
        "curl": curl(f"{REST}/savings?{urlencode(rest)}"),
    }
    try:
        found = _found(request, window, hours)
    except Invalid as problem:
        return show(request, "frontend/savings.html", {**context, "problem": problem}, status=problem.status)
    groups = presenter.groups(found, _reader(request, window, found))
    return show(request, "frontend/savings.html", {**context, "groups": groups, "span": found.window})


def _reader(request: PageRequest, window: str, found: Savings) -> presenter.Reader:
    ids = [one.holder_id for one in found.found if one.holder_id]
    own = jobs.rows(access.visible_projects(request.user)).filter(facts__job__uid__in=list(map(str, ids)))
    on = {gpu.node for one in found.found for gpu in one.gpus}
    return presenter.Reader(
        address={"window": window, "timezone": timezone.get_current_timezone_name()},
        may=access.permissions_of(request.user),
        rows={row.pk: row for row in selectors.visible(request.user).filter(pk__in=ids)} if ids else {},
        jobs={one.uid: one.name for one in jobs.read(own)} if ids else {},
        nodes=set(Node.objects.filter(name__in=on).values_list("cluster", "name")) if on else (),
        may_set_prices=access.can(request.user, "price.manage", None),
    )


def _found(request: PageRequest, window: str, hours: str) -> Savings:
    if not (hours.isascii() and hours.isdecimal() and len(hours) <= len(str(MAX_IDLE_HOURS))):
        raise Invalid({"idle_hours": [f"Give 1 to {MAX_IDLE_HOURS} hours."]})
    calendar, now = Calendar(timezone.get_current_timezone()), clock.now()
    question = Question(windows.parse(window, now, calendar), now, calendar=calendar)
    return possible_savings(asked_by(request.user, question), int(hours))


urlpatterns = [
    path("costs/savings", savings, name="savings"),
]
DOCS = "how-to/savings"
MENU = {"savings": Item(USAGE, 30, "Waste", is_for_all=True)}
