"""Timeline: what each was, by flavor and node, and what lay idle."""

from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.menu import USAGE, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters import asset_links, flavor_steps, fleet_hours, strip_axis, strips
from frontend.presenters.costs_address import REST, curl
from frontend.presenters.costs_form import with_chosen
from frontend.views.costs_fleet import refuse_others_than_staff
from portal.core import clock
from portal.core.errors import Invalid
from quotas.costs import asset_strips, filters, selectors, steps
from quotas.costs.asset_strips import NodeKey
from quotas.costs.calendar import Calendar
from quotas.costs.filters import And, Comparison, Filter, Operator
from quotas.costs.rating import Window
from quotas.costs.steps import Step
from quotas.metering.hours import DAY, HOUR

PAGE_SIZE = 25
STEP_HOURS = ((2, 1), (7, 4))
"""Up to so many days the strips of flavors have a step of so many hours, above of a day."""
WINDOWS = {
    "24h": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "month": "this month",
    "lastmonth": "last month",
}
LEFT_OUT = str.maketrans("", "", '"\x00')
"""No name has these, and REST's filter has quotes around names."""
SORTS = {"name": "Name", "idle": "Idle cost, highest first"}


@require_safe
@page
def cost_assets(request: PageRequest) -> HttpResponse:
    """Show flavors and a page of nodes with their GPUs, for operators and auditors. The address takes any window of
    REST.
    """
    refuse_others_than_staff(request.user)
    given = {
        name: request.GET.get(name, "").translate(LEFT_OUT).strip() for name in ("window", "flavor", "node", "sort")
    }
    given = {**given, "window": given["window"] or "7d", "sort": given["sort"] or "name"}
    now = clock.now()
    context: dict[str, object] = {"given": given, "windows": with_chosen(given["window"], WINDOWS), "sorts": SORTS}
    try:
        context |= _found(request, given, now)
    except Invalid as problem:
        return show(request, "frontend/cost_assets.html", {**context, "problem": problem}, status=problem.status)
    return show(request, "frontend/cost_assets.html", context)


def _found(request: PageRequest, given: dict[str, str], now: datetime) -> dict[str, object]:
    zone = timezone.get_current_timezone()
    calendar = Calendar(zone)
    window = strips.parse_window(given["window"], now, calendar)
    if given["sort"] not in SORTS:
        raise Invalid({"sort": [f"Use one of {', '.join(SORTS)}."]})
    where, currency = _filter(given), selectors.currency()
    flavors = asset_strips.of_flavors(request.user, _edges(window, calendar), where, now)
    keys, is_sorted = _sorted(request, given, window, where, now)
    number = min(_page(request.GET.get("page", "")), max(1, -(-len(keys) // PAGE_SIZE)))
    shown = keys[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    found = asset_strips.of_nodes(request.user, shown, window, now)
    links = asset_links.read({"window": given["window"], "timezone": str(zone)}, [key.node for key in shown])
    query = {name: value for name, value in given.items() if value}
    rest = {"window": given["window"], "timezone": str(zone), "aggregate": "node", "filter": _as_text(given)}
    return {
        "window": window,
        "until": max(window.start, min(window.end, now)),
        "capacity_since": fleet_hours.recorded_since(window.start),
        "flavors": None if flavors is None else strips.flavor_lines(flavors, window, currency, links),
        "flavor_steps": flavor_steps.table(flavors or (), window, calendar),
        "total": strips.total_line(flavors, currency) if flavors else None,
        "titles": strips.TITLES,
        "box": (strip_axis.WIDTH, strips.HEIGHT),
        "axis": strip_axis.ticks(window, calendar),
        "nodes": strips.node_groups(found, asset_strips.node_sums(found), window, currency, links),
        "node_count": len(keys),
        "has_clusters": len({key.cluster for key in keys}) > 1,
        "is_sorted": is_sorted,
        "first": (number - 1) * PAGE_SIZE + 1,
        "last": (number - 1) * PAGE_SIZE + len(shown),
        "previous": urlencode({**query, "page": number - 1}) if number > 1 else "",
        "next": urlencode({**query, "page": number + 1}) if number * PAGE_SIZE < len(keys) else "",
        "is_filtered": bool(given["flavor"] or given["node"]),
        "curl": curl(f"{REST}/assets?{urlencode({name: value for name, value in rest.items() if value})}"),
    }


def _edges(window: Window, calendar: Calendar) -> list[datetime]:
    """Return the edges of the steps of flavors; every midnight is one."""
    days = steps.edges(window, Step.DAY, calendar)
    for most, hours in STEP_HOURS:
        if window.end - window.start <= most * DAY + HOUR:  # clocks may change
            return sorted({*days, *steps.edges(window, Step.HOUR, calendar)[::hours]})
    return list(days)


def _sorted(
    request: PageRequest, given: dict[str, str], window: Window, where: Filter, now: datetime
) -> tuple[list[NodeKey], bool]:
    """Return all nodes in the chosen order, and whether that was possible."""
    keys = asset_strips.nodes(request.user, window, where, now)
    if given["sort"] == "name":
        return keys, True
    by_idle = asset_strips.by_idle_cost(keys, window, now)
    return (keys, False) if by_idle is None else (by_idle, True)


def _filter(given: dict[str, str]) -> Filter:
    parts = []
    if given["flavor"]:
        parts.append(Comparison("flavor", Operator.EQUALS, [given["flavor"]]))
    if given["node"]:
        parts.append(Comparison("node", Operator.CONTAINS, [given["node"]]))
    return And(tuple(parts)) if parts else filters.EVERYTHING


def _as_text(given: dict[str, str]) -> str:
    """Return the filter as REST reads it."""
    words = {"flavor": ":", "node": "~:"}
    return "+".join(f'{name}{sign}"{given[name]}"' for name, sign in words.items() if given[name])


def _page(text: str) -> int:
    if text and not (text.isdecimal() and len(text) < 8 and int(text)):
        raise Invalid({"page": ["This page does not exist. Use the links below the table."]})
    return int(text or 1)


urlpatterns = [
    path("costs/assets", cost_assets, name="cost-assets"),
]
DOCS = "how-to/costs"
MENU = {"cost-assets": Item(USAGE, 10, "Timeline")}
