"""Flavors with their nodes, for operators and auditors."""

from typing import Any

from django.contrib import messages
from django.db.models import BooleanField, Count, F, Func, Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.admin_forms import FlavorForm
from frontend.menu import ADMIN, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters import flavors as shown
from frontend.tables import sorting
from frontend.views.tenants import form_page
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
        "may_manage": access.can(request.user, services.ACTION, None),
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
        "may_manage": access.can(request.user, services.ACTION, None),
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


@require_POST
@page
def accept(request: PageRequest, name: str) -> HttpResponse:
    row = services.accept_flavor(request.user, _named(request, name))
    messages.success(request, f"{row.name} is offered now. Next, set its price and quotas.")
    return redirect("flavor", row.name)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def configure(request: PageRequest, name: str) -> HttpResponse:
    """Change what operators decide about a flavor."""
    row = services.flavor_to_configure(request.user, _named(request, name))
    form = FlavorForm(row, request.POST or None)

    def save(values: dict[str, Any]) -> str:
        fresh = Flavor.objects.get(pk=row.pk)  # a valid form has changed its own
        return f"Flavor {services.configure_flavor(request.user, fresh, form.changes()).name} saved."

    words = {"title": f"Flavor {name}", "button": "Save", "back": reverse("flavors")}
    return form_page(request, form, save, words)


@require_POST
@page
def hide_offering(request: PageRequest, name: str) -> HttpResponse:
    """Hide an offering of the flavor, or show it again."""
    row = _named(request, name).offerings.filter(key=request.POST.get("offering", "").replace("\x00", "")).first()
    if row is None:
        raise NotVisible("The offering")
    hidden = "hide" in request.GET
    services.hide_offering(request.user, row, hidden=hidden)
    messages.success(request, f"{row.key} is {'hidden' if hidden else 'shown again'}.")
    return redirect("flavor", name)


def _named(request: PageRequest, name: str) -> Flavor:
    rows = access.for_platform(request.user, Flavor.objects.select_related("cluster"))
    row = None if "\x00" in name else rows.filter(name=name).first()
    if row is None:
        raise NotVisible(f"The flavor {named(name)}")
    return row


urlpatterns = [
    path("flavors", flavors, name="flavors"),
    path("flavors/<str:name>", flavor, name="flavor"),
    path("flavors/<str:name>/accept", accept, name="accept-flavor"),
    path("flavors/<str:name>/offerings", hide_offering, name="hide-offering"),
    path("flavors/<str:name>/edit", configure, name="configure-flavor"),
    path("flavors/<str:name>/unaccept", unaccept, name="unaccept-flavor"),
]
DOCS = "how-to/offer-gpus"
MENU = {"flavors": Item(ADMIN, 40, "Flavors")}
