"""The fleet now: nodes with their GPUs and who uses them, and the page of one node; for operators and auditors."""

from collections.abc import Iterable, Mapping

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from allocations.capacity import fleet as capacity_fleet
from allocations.capacity import fleet_nodes, pool_use
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.poll_version import unchanged
from frontend.presenters import fleet as shown
from frontend.presenters import model_use
from frontend.presenters.fleet_cells import FILLS
from portal.clusters import registry
from portal.core.reading import digest_of
from portal.http import own_writes
from portal.tenants.models import Team
from quotas.catalog import faults
from quotas.catalog.models import Flavor, Node

PAGE_SIZE, DENSE_SIZE = 50, 1000
ATTENTION, NOT_OFFERED = "attention", "not-offered"
STATES = {"": "All", ATTENTION: "Unavailable", NOT_OFFERED: "Not offered"}
DENSE = "nodes"
VIEWS = {"": "Slices", DENSE: "Nodes only"}
FILTERS = ("cluster", "flavor", "team", "state", "node", "view")


@require_safe
@page
def fleet(request: PageRequest) -> HttpResponse:
    """Show a page of nodes with their GPUs, with the filters of the address; many as one strip each."""
    given = {name: request.GET.get(name, "").replace("\x00", "").strip() for name in FILTERS}
    is_dense = given["view"] == DENSE
    found = paged(request, _filtered(request, given), "page", DENSE_SIZE if is_dense else PAGE_SIZE)
    drawn = shown.rows(fleet_nodes.with_gpus(request.user, list(found)))
    kept = capacity_fleet.fleet(own_writes.fleet_max_age_s(request.user.pk))
    models = model_use.lines(pool_use.of_fleet(kept, kept.usage))
    held = fleet_nodes.held_as_count(request.user)
    drawn_nodes = [(one.url, one.runs) for one in drawn.nodes] if is_dense else drawn
    current = digest_of(drawn_nodes, found.of, models, held)
    if same := unchanged(request, current):
        return same
    query = request.GET.copy()
    query.pop("v", None)
    choices = {
        "cluster": ("Cluster", _all_or(registry.slugs())),
        "flavor": ("Flavor", _all_or(Flavor.objects.order_by("name").values_list("name", flat=True))),
        "team": ("Team", _all_or(Team.objects.order_by("slug").values_list("slug", flat=True))),
        "state": ("State", STATES),
        "view": ("Show", VIEWS),
    }
    context = {
        "given": given,
        "choices": [(name, word, list(values.items()), given[name]) for name, (word, values) in choices.items()],
        "is_filtered": any(value for name, value in given.items() if name != "view"),
        "is_dense": is_dense,
        "found": found,
        "models": [(one, _count_words(held.get(one.flavor, {}))) for one in models],
        "nodes": drawn.nodes,
        "legend": drawn.legend,
        "fills": list(FILLS.items()),
        "query": query.urlencode(),
        "version": current,
    }
    return show(request, "frontend/fleet.html", context, partial="rows")


def _filtered(request: PageRequest, given: Mapping[str, str]) -> QuerySet[Node]:
    rows = fleet_nodes.nodes(request.user)
    if given["cluster"]:
        rows = rows.filter(cluster=given["cluster"])
    if given["flavor"]:
        rows = rows.filter(flavor__name=given["flavor"])
    if given["node"]:
        rows = rows.filter(name__icontains=given["node"])
    if given["team"]:
        rows = rows.filter(fleet_nodes.used_by(given["team"]))
    if given["state"] == ATTENTION:
        rows = rows.filter(faults.UNUSABLE | Q(pk__in=faults.unhealthy_devices().order_by().values("node")))
    if given["state"] == NOT_OFFERED:
        rows = rows.filter(flavor=None)
    return rows


def _all_or(names: Iterable[str]) -> dict[str, str]:
    return {"": "All"} | {name: name for name in names}


def _count_words(held: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {offering}" for offering, count in held.items())


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
DOCS = "operate/fleet"
DOCS_OF = {"fleet-node": "operate/troubleshoot"}
