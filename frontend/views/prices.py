"""Prices, and for platform staff what nodes cost and by which term; operators set and import them with a preview."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from frontend.menu import COSTS, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.presenters import prices as shown
from frontend.previewed_form import previewed
from frontend.price_forms import NodeCostForm, NodeTermForm, PriceForm, TableForm
from frontend.tables import sorting
from portal.core import clock
from portal.core.errors import NotVisible
from portal.tenants import access
from quotas.costs import currencies, history, previews, price_tables, public_prices, subjects, withdrawals
from quotas.costs.price_tables import Import

PAGE_SIZE = 50
MAX_RESULTS = 100
"""The most rows of an import that are shown; errors come first."""
PRICES = shown.dated_columns(
    "Flavor or offering", ("flavor__name", "offering__key"), "Price", ("per_gpu_hour", "per_slice_hour")
)
NODE_COSTS = shown.dated_columns("Flavor and term, or node", ("flavor__name", "term", "node__name"), "Cost", "per_hour")
NODE_TERMS = shown.dated_columns("Node", "node__name", "Term", "term")


@require_safe
@page
def prices(request: PageRequest) -> HttpResponse:
    """Show the prices in force and later ones, or with ``all`` their whole history."""
    now, is_all = clock.now(), bool(request.GET.get("all"))
    order, rows = sorting(request, PRICES), history.prices()
    rows = order.query(rows if is_all else history.not_replaced(rows, now), "-valid_from", "-pk")
    context: dict[str, Any] = {
        "sorting": order,
        "found": paged(request, rows, "page", PAGE_SIZE),
        "is_all": is_all,
        "may_set": access.can(request.user, "price.manage", None),
        "not_priced": shown.not_priced(now),
    }
    context["lines"] = shown.dated_lines("price", context["found"], now)
    if access.sees_all(request.user):
        costs, terms = history.node_costs(request.user), history.node_terms(request.user)
        if not is_all:
            costs, terms = history.not_replaced(costs, now), history.not_replaced(terms, now)
        by_cost = sorting(request, NODE_COSTS, parameter="sort-costs")
        by_term = sorting(request, NODE_TERMS, parameter="sort-terms")
        context |= {
            "sorting_costs": by_cost,
            "sorting_terms": by_term,
            "found_costs": paged(request, by_cost.query(costs, "-valid_from", "-pk"), "costs", PAGE_SIZE),
            "found_terms": paged(request, by_term.query(terms, "-valid_from", "-pk"), "terms", PAGE_SIZE),
        }
        context["cost_lines"] = shown.dated_lines("node-cost", context["found_costs"], now)
        context["term_lines"] = shown.dated_lines("node-term", context["found_terms"], now)
        context["sees_costs"] = True
    return show(request, "frontend/prices.html", context)


@require_safe
@page
def public(request: PageRequest) -> HttpResponse:
    """Show public list prices; for operators with a link to the form of a node cost, which states nothing by itself."""
    unit, may_set = currencies.of_portal(), access.can(request.user, "price.manage", None)
    lines = shown.public_lines(public_prices.listed(), unit, may_set=may_set)
    context = {"lines": lines, "unit": unit, "may_set": may_set, "has_forms": any(line.form for line in lines)}
    return show(request, "frontend/public_prices.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def set_price(request: PageRequest) -> HttpResponse:
    form = PriceForm(request.user, request.POST or None, initial=request.GET.dict())
    words = {
        "title": "Set a price",
        "lead": "A slice costs its share of the price of its flavor, or the list price of its offering if there is "
        "one. A price never changes what was charged: it begins now or later.",
        "button": "Set the price",
        "back": reverse("prices"),
    }

    def act() -> str:
        return f"Price set: {form.act()} UTC."

    return previewed(request, form, lambda: shown.price_effect(previews.price_effect(form.act)), act, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def set_node_cost(request: PageRequest) -> HttpResponse:
    form = NodeCostForm(request.user, request.POST or None, initial=request.GET.dict() or None)
    words = {
        "title": "Set a node cost",
        "lead": "What an hour of a GPU, or of a node, costs the platform. The cost of one node prevails over that of "
        "its flavor and term. Without any, a GPU costs the price of its flavor.",
        "button": "Set the cost",
        "back": reverse("prices"),
    }

    def act() -> str:
        return f"Cost set: {form.act()} UTC."

    return previewed(request, form, lambda: shown.node_cost_effect(*previews.node_cost_effect(form.act)), act, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def set_node_term(request: PageRequest) -> HttpResponse:
    form = NodeTermForm(request.user, request.POST or None, initial=request.GET.dict() or None)
    words = {
        "title": "Set a node term",
        "lead": "How the platform pays for a node whose labels do not say it: on demand, reserved or spot.",
        "button": "Set the term",
        "back": reverse("prices"),
    }

    def act() -> str:
        return f"Term set: {form.act()} UTC."

    return previewed(request, form, lambda: shown.node_term_effect(*previews.node_term_effect(form.act)), act, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def import_table(request: PageRequest) -> HttpResponse:
    """Check a CSV table of prices, costs and terms, then import it: all rows or none."""
    user = request.user
    subjects.flavors(user)
    is_post = request.method == "POST"
    form = TableForm(request.POST if is_post else None, request.FILES if is_post else None)
    words = {"title": "Import prices", "button": "Import", "back": reverse("prices")}

    def effect() -> dict[str, Any]:
        done = price_tables.import_table(user, form.cleaned_data["csv"], dry_run=True)
        form.data = {"csv": form.cleaned_data["csv"]}
        return _results(done)

    def act() -> str:
        done = price_tables.import_table(user, form.cleaned_data["csv"], dry_run=False)
        form.require_applied(done)
        created = sum(row.result == "created" for row in done.rows)
        return f"Imported: {created} created, {len(done.rows) - created} unchanged."

    return previewed(request, form, effect, act, words, "frontend/price_import.html")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def withdraw(request: PageRequest, kind: str, dated_id: int) -> HttpResponse:
    """Ask for confirmation; then withdraw a price, a cost or a term that has not begun."""
    if kind not in withdrawals.KINDS:
        raise NotVisible("This")
    noun, back = withdrawals.KINDS[kind].noun, "bills" if kind == "fixed-cost" else "prices"
    if request.method == "POST":
        row = withdrawals.withdraw(request.user, kind, dated_id)
        messages.success(request, f"Withdrawn: the {noun} of {withdrawals.subject(row)}.")
        return redirect(back)
    row = withdrawals.to_withdraw(request.user, kind, dated_id)
    context = {
        "noun": noun,
        "subject": withdrawals.subject(row),
        "value": shown.value_of(row),
        "begins": withdrawals.begins(row),
        "by_month": kind == "fixed-cost",
        "back": reverse(back),
    }
    return show(request, "frontend/withdraw.html", context, partial="question")


def _results(done: Import) -> dict[str, Any]:
    """Return what a check found; times of rows are in UTC, and say so."""
    first = sorted(done.rows, key=lambda row: row.result != "error")[:MAX_RESULTS]
    shown_rows = [row if row.result == "error" else replace(row, message=f"{row.message} UTC") for row in first]
    return {
        "rows": sorted(shown_rows, key=lambda row: row.line),
        "left": len(done.rows) - len(first),
        "errors": done.errors,
        "created": sum(row.result == "created" for row in done.rows),
        "unchanged": sum(row.result == "unchanged" for row in done.rows),
    }


urlpatterns = [
    path("prices", prices, name="prices"),
    path("prices/set", set_price, name="set-price"),
    path("prices/node-costs/set", set_node_cost, name="set-node-cost"),
    path("prices/node-terms/set", set_node_term, name="set-node-term"),
    path("prices/import", import_table, name="import-prices"),
    path("prices/public", public, name="public-prices"),
    path("prices/<str:kind>/<int:dated_id>/withdraw", withdraw, name="withdraw"),
]
DOCS = "operate/prices"
MENU = {"prices": Item(COSTS, 30, "Prices", is_for_all=True)}
