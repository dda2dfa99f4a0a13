"""The proof that the ledger is balanced: since when, and the hours and rows that fail. For platform staff."""

from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.menu import COSTS, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters.balance import balance
from frontend.presenters.costs_form import with_chosen
from frontend.presenters.prices import not_priced
from frontend.presenters.proof import hour_lines
from portal.core import clock
from portal.core.errors import Invalid
from quotas.costs import windows
from quotas.costs.calendar import Calendar
from quotas.metering import ledger_starts, proofs

PAGE_SIZE = 48
WINDOWS = {
    "today": "today",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "month": "this month",
    "lastmonth": "last month",
}


@require_safe
@page
def proof(request: PageRequest) -> HttpResponse:
    """Show what was proved of each cluster, the rows that fail, and the hours of a window, or those that fail."""
    now, window = clock.now(), request.GET.get("window") or "7d"
    context = {
        "window": window,
        "windows": with_chosen(window, WINDOWS),
        "only_failing": bool(request.GET.get("failing")),
        "problem": None,
        "not_priced": not_priced(now),
    }
    try:
        span = windows.parse(window, now, Calendar(timezone.get_current_timezone()))
    except Invalid as problem:
        proofs.in_window(request.user, now, now)  # refuses who may not see the proof at all
        return show(request, "frontend/proof.html", context | {"problem": problem}, status=problem.status)
    rows = proofs.in_window(request.user, span.start, span.end).order_by("-hour", "cluster_id")
    if context["only_failing"]:
        rows = rows.filter(balanced=False)
    found = paged(request, rows, "page", PAGE_SIZE)
    context |= {"found": found, "balance": balance(), "span": span}
    context["lines"] = hour_lines(found, ledger_starts.capacity_recorded_since())
    return show(request, "frontend/proof.html", context)


urlpatterns = [
    path("costs/proof", proof, name="proof"),
]
DOCS = "concepts/capacity"
MENU = {"proof": Item(COSTS, 50, "Reconciliation")}
