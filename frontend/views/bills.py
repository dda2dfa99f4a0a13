"""Bills of clusters and fixed costs, for platform staff; operators enter them with a preview."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from frontend.menu import COSTS, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters import prices as shown
from frontend.previewed_form import previewed
from frontend.price_forms import BillForm, SharedCostForm
from portal.core import clock
from portal.tenants import access
from quotas.costs import history, previews
from quotas.costs.answers import answer
from quotas.costs.models import Bill
from quotas.costs.questions import asked_by
from quotas.costs.steps import Step

PAGE_SIZE = 50


@require_safe
@page
def bills(request: PageRequest) -> HttpResponse:
    """Show what the last months cost beside their bills, all bills that were entered, and fixed costs."""
    user, now = request.user, clock.now()
    rows = access.for_platform(user, Bill.objects.order_by("-month", "cluster_id", "-pk"))
    counting = list(history.bills_that_count(user))
    costs = answer(replace(asked_by(user, previews.billed_months(now)), step=Step.MONTH))
    found = paged(request, rows, "page", PAGE_SIZE)
    fixed = paged(request, history.shared_costs(user), "fixed", PAGE_SIZE)
    context: dict[str, Any] = {
        "months": shown.month_lines(costs, {(row.cluster_id, row.month): row for row in counting}),
        "month_count": previews.BILLED_MONTHS,
        "parts": shown.capacity_parts(costs),
        "currency": costs.currency,
        "covered": shown.per_cent(costs.billed_share),
        "found": found,
        "lines": shown.bill_lines(found, {row.pk for row in counting}),
        "found_fixed": fixed,
        "fixed": shown.dated_lines("fixed-cost", fixed, now),
        "may_set": access.can(user, "price.manage", None),
        "not_priced": shown.not_priced(now),
    }
    return show(request, "frontend/bills.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def enter_bill(request: PageRequest) -> HttpResponse:
    form = BillForm(request.user, request.POST or None, initial=request.GET.dict() or None)
    words = {
        "title": "Enter a bill",
        "lead": "What a cluster cost in a month, from the invoice. A later bill for the same month replaces it. The "
        "difference from the cost of its capacity is shared in proportion to cost.",
        "button": "Enter the bill",
        "back": reverse("bills"),
    }

    def effect() -> shown.Effect:
        return shown.bill_effect(previews.bill_effect(request.user, form.act))

    def act() -> str:
        return f"Bill entered: {form.act()}."

    return previewed(request, form, effect, act, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def set_fixed_cost(request: PageRequest) -> HttpResponse:
    form = SharedCostForm(request.user, request.POST or None, initial=request.GET.dict() or None)
    words = {
        "title": "Set a fixed cost",
        "lead": "A cost of every month from the first one on, such as network or support. It never changes what was "
        "charged: a new one begins in this month or later.",
        "button": "Set the fixed cost",
        "back": reverse("bills"),
    }

    def act() -> str:
        return f"Fixed cost set: {form.act()}."

    return previewed(
        request, form, lambda: shown.shared_cost_effect(*previews.shared_cost_effect(form.act)), act, words
    )


urlpatterns = [
    path("bills", bills, name="bills"),
    path("bills/enter", enter_bill, name="enter-bill"),
    path("bills/fixed-costs/set", set_fixed_cost, name="set-fixed-cost"),
]
DOCS = "operate/prices"
MENU = {"bills": Item(COSTS, 40, "Bills")}
