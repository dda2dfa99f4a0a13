"""What the GPUs of one node were over time, also as a table of times."""

from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.capacity import fleet_nodes
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters import asset_links, fleet_hours, gpu_intervals, strip_axis, strips
from frontend.presenters.costs_address import REST, curl
from frontend.presenters.costs_filters import narrowed
from frontend.presenters.costs_form import with_chosen
from frontend.views.cost_assets import LEFT_OUT, WINDOWS
from frontend.views.costs_fleet import refuse_others_than_staff
from portal.core import clock
from portal.core.errors import Invalid
from quotas.costs import asset_strips, selectors
from quotas.costs.asset_strips import GpuStrip
from quotas.costs.calendar import Calendar
from quotas.costs.filters import EVERYTHING, And, Comparison, Operator
from quotas.costs.rating import Window

PAGE_ROWS = 100


@require_safe
@page
def node(request: PageRequest, cluster: str, name: str) -> HttpResponse:
    """Show the GPUs of a node, or one of them, for operators and auditors. The address takes any window of REST."""
    refuse_others_than_staff(request.user)
    given = {"window": request.GET.get("window") or "7d", "gpu": request.GET.get("gpu", "").translate(LEFT_OUT).strip()}
    calendar, now = Calendar(timezone.get_current_timezone()), clock.now()
    context: dict[str, object] = {
        "cluster": cluster,
        "name": name,
        "given": given,
        "windows": with_chosen(given["window"], WINDOWS),
        "all_nodes": urlencode({"window": given["window"]}),
    }
    try:
        window = strips.parse_window(given["window"], now, calendar)
    except Invalid as problem:
        return show(request, "frontend/cost_assets_node.html", {**context, "problem": problem}, status=problem.status)
    found = _strips(request, cluster, name, window, now)
    shown = [one for one in found if given["gpu"] in ("", one.asset.key.name)]
    address = {"window": given["window"], "timezone": str(calendar.zone)}
    times = paged(request, gpu_intervals.intervals(shown), "page", PAGE_ROWS)
    links = asset_links.read(address, [name])
    context |= {
        "start": window.start,
        "end": window.end,
        "capacity_since": fleet_hours.recorded_since(window.start),
        "gpus": sorted({one.asset.key.name for one in found}, key=lambda gpu: (len(gpu), gpu)),
        "titles": strips.TITLES,
        "box": (strip_axis.WIDTH, strips.HEIGHT),
        "axis": strip_axis.ticks(window, calendar),
        "groups": strips.node_groups(shown, asset_strips.node_sums(shown), window, selectors.currency(), links),
        "times": times,
        "rows": gpu_intervals.rows(request.user, list(times)),
        "curl": _curl(cluster, name, address),
    }
    return show(request, "frontend/cost_assets_node.html", context)


def _strips(request: PageRequest, cluster: str, name: str, window: Window, now: datetime) -> list[GpuStrip]:
    """Return the GPUs of the node. Raises NotVisible for a name that no node has or had."""
    named = (Comparison("cluster", Operator.EQUALS, [cluster]), Comparison("node", Operator.EQUALS, [name]))
    keys = asset_strips.nodes(request.user, window, And(named), now)
    if not keys:
        fleet_nodes.node_named(request.user, cluster, name)
    return asset_strips.of_nodes(request.user, keys, window, now)


def _curl(cluster: str, name: str, address: dict[str, str]) -> str:
    """Return the command that requests the GPUs of the node; empty if no filter can name it."""
    try:
        where = narrowed(EVERYTHING, [("cluster", cluster), ("node", name)])
    except ValueError:  # a quotation mark in a name
        return ""
    return curl(f"{REST}/assets?{urlencode({**address, 'aggregate': 'gpu', 'filter': where})}")


urlpatterns = [
    path("costs/assets/<str:cluster>/<str:name>", node, name="cost-assets-node"),
]
DOCS = "how-to/costs"
