"""Flavors with their nodes, for operators and auditors."""

from django.contrib import messages
from django.db.models import BooleanField, Count, F, Func, Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods, require_safe

from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters import flavors as shown
from frontend.tables import sorting
from portal.core.errors import NotVisible
from portal.core.quotation import named
from portal.tenants import access
from quotas.catalog import quantities, services
from quotas.catalog.mig_tables import tables_of
from quotas.catalog.models import Flavor, Node

PAGE_SIZE = 50
PRESENT = Q(nodes__present=True)
HAS_UNITS = Q(nodes__supply={}) | Q(
    Func(
        F("nodes__supply"),
        template="jsonb_path_exists(%(expressions)s, '$.units.* ? (@ > 0)')",
        output_field=BooleanField(),
    )
)
"""At least one unit of the node is healthy. An older release recorded no supply."""


@require_safe
@page
def flavors(request: PageRequest) -> HttpResponse:
    """List the flavors that were found, with the numbers of their nodes, and the nodes that belong to none."""
    rows = Flavor.objects.select_related("cluster").prefetch_related("offerings")
    counted = access.for_platform(request.user, rows).annotate(
        node_count=Count("nodes", filter=PRESENT),
        ready_count=Count("nodes", filter=PRESENT & Q(nodes__ready=True) & HAS_UNITS),
        problem_count=Count("nodes", filter=PRESENT & ~Q(nodes__problem="")),
    )
    others = Node.objects.select_related("cluster").filter(flavor=None, present=True)
    order, of_nodes = sorting(request, shown.FLAVORS), sorting(request, shown.NODES, parameter="nodes")
    context = {
        "sorting": order,
        "lines": order.rows(shown.line(row) for row in counted.order_by("name")),
        "sorting_nodes": of_nodes,
        "others": paged(request, of_nodes.query(others, "name", "pk"), "page", PAGE_SIZE),
    }
    return show(request, "frontend/flavors.html", context)


@require_safe
@page
def flavor(request: PageRequest, name: str) -> HttpResponse:
    """Show one flavor with its nodes, those with a problem first."""
    row = _named(request, name)
    order = sorting(request, shown.NODES)
    nodes = row.nodes.filter(present=True).annotate(has_problem=~Q(problem=""))
    context = {
        "row": row,
        "state": shown.state(row),
        "gpu_memory": quantities.memory_text(row.whole_gpu_mib) if row.whole_gpu_mib else "",
        "is_listed": bool(tables_of(row.product)),
        "may_unaccept": row.accepted and access.can(request.user, "catalog.manage", None),
        "offerings": row.offerings.order_by("key"),
        "sorting": order,
        "nodes": paged(request, order.query(nodes, "-has_problem", "name", "pk"), "page", PAGE_SIZE),
    }
    return show(request, "frontend/flavor.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def unaccept(request: PageRequest, name: str) -> HttpResponse:
    """Ask for confirmation; then make an accepted flavor a proposal again."""
    row = _named(request, name)
    if request.method == "POST":
        services.configure_flavor(request.user, row, {"accepted": False})
        messages.success(request, f"{row.name} is a proposal again.")
        return redirect("flavor", row.name)
    uses = services.uses_of_flavor(request.user, row)
    return show(request, "frontend/unaccept.html", {"row": row, "uses": uses}, partial="question")


def _named(request: PageRequest, name: str) -> Flavor:
    rows = access.for_platform(request.user, Flavor.objects.select_related("cluster"))
    row = None if "\x00" in name else rows.filter(name=name).first()
    if row is None:
        raise NotVisible(f"The flavor {named(name)}")
    return row


urlpatterns = [
    path("flavors", flavors, name="flavors"),
    path("flavors/<str:name>", flavor, name="flavor"),
    path("flavors/<str:name>/unaccept", unaccept, name="unaccept-flavor"),
]
DOCS = "how-to/offer-gpus"
