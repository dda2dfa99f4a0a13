"""The fleet now: nodes with their GPUs and who uses them, and the page of one node; for operators and auditors."""

from django.db.models import Q
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from allocations.capacity import fleet_nodes
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.poll_version import unchanged
from frontend.presenters import fleet as shown
from portal.core.reading import digest_of
from portal.tenants.models import Team
from quotas.catalog import faults
from quotas.catalog.models import Flavor

PAGE_SIZE = 50
ATTENTION, NOT_OFFERED = "attention", "not-offered"
STATES = {"": "All nodes", ATTENTION: "Something cannot be used", NOT_OFFERED: "Not offered"}


@require_safe
@page
def fleet(request: PageRequest) -> HttpResponse:
    """Show a page of nodes as tiles, with the filters of the address."""
    given = {name: request.GET.get(name, "").replace("\x00", "").strip() for name in ("flavor", "node", "state")}
    rows = fleet_nodes.nodes(request.user)
    if given["flavor"]:
        rows = rows.filter(flavor__name=given["flavor"])
    if given["node"]:
        rows = rows.filter(name__icontains=given["node"])
    if given["state"] == ATTENTION:
        rows = rows.filter(faults.UNUSABLE | Q(pk__in=faults.unhealthy_devices().order_by().values("node")))
    if given["state"] == NOT_OFFERED:
        rows = rows.filter(flavor=None)
    found = paged(request, rows, "page", PAGE_SIZE)
    teams = Team.objects.order_by("pk").values_list("slug", "pk")
    held = fleet_nodes.held_as_count(request.user)
    drawn = shown.tiles(fleet_nodes.with_gpus(request.user, list(found)), teams, held)
    current = digest_of(drawn, found.of)
    if same := unchanged(request, current):
        return same
    query = request.GET.copy()
    query.pop("v", None)
    context = {
        "given": given,
        "states": STATES,
        "flavors": list(Flavor.objects.order_by("name").values_list("name", flat=True)),
        "is_filtered": any(given.values()),
        "found": found,
        "nodes": drawn.nodes,
        "legend": drawn.legend,
        "query": query.urlencode(),
        "version": current,
    }
    return show(request, "frontend/fleet.html", context, partial="rows")


@require_safe
@page
def node(request: PageRequest, cluster: str, name: str) -> HttpResponse:
    """Show a node: why it is not offered, its conditions, taints, driver and labels, and its GPUs with holders."""
    row = fleet_nodes.node_named(request.user, cluster, name)
    (found,) = fleet_nodes.with_gpus(request.user, [row])
    gpus = [(gpu, shown.holder_lines(gpu.uses)) for gpu in found.gpus]
    resources = [(one, shown.holder_lines(one.uses)) for one in found.resources]
    conditions = shown.condition_lines(found)
    current = digest_of(found.facts, gpus, resources, row.problem, row.present)
    if same := unchanged(request, current):
        return same
    context = {
        "node": row,
        "facts": found.facts,
        "problem": shown.problem(found),
        "conditions": conditions,
        "driver": shown.driver_lines(found),
        "labels": sorted(found.facts["labels"].items()) if found.facts else [],
        "gpus": gpus,
        "resources": resources,
        "version": current,
    }
    return show(request, "frontend/fleet_node.html", context, partial="live")


urlpatterns = [
    path("fleet", fleet, name="fleet"),
    path("fleet/nodes/<str:cluster>/<str:name>", node, name="fleet-node"),
]
DOCS = "operate/troubleshoot"
