"""Limits: the list, and a change with a preview before it is applied."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods, require_safe

from allocations.capacity.quota_usage import QuotaUsage
from allocations.limits import services as limit_services
from allocations.limits.matrix import matrix as limit_matrix
from allocations.queues import lending
from frontend import form_idempotency
from frontend.limit_cell_form import AmountsForm
from frontend.limit_form import LimitForm
from frontend.matrix_part import matrix_part, matrix_query
from frontend.pages import PageRequest, page, show
from frontend.presenters import limits as shown
from frontend.presenters.contacts import who_to_ask
from frontend.presenters.limit_matrix import table as limit_table
from frontend.presenters.limit_matrix import team_slugs
from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.tenants import access
from portal.tenants.models import Department, Team
from quotas.costs import windows
from quotas.limits import services
from quotas.limits.selectors import policies, visible_limits

SPAN = "7d"


@require_safe
@page
def index(request: PageRequest) -> HttpResponse:
    """List the limits of the teams the person may see. Operators see all of them, with the fleet's capacity."""
    user, usage = request.user, QuotaUsage()
    whole = limit_matrix(user, usage)
    part = matrix_part(request, whole)
    matrix = limit_table(part.matrix)
    teams = list(access.visible_teams(user).select_related("department"))
    departments = list(usage.quotas.departments) if access.sees_all(user) else []
    rows = list(visible_limits(user).order_by("id"))
    holders: list[Department | Team] = [*departments, *teams]
    context = {
        "matrix": matrix,
        "part": part,
        "part_query": matrix_query(request),
        "team_slugs": team_slugs(whole),
        "key": form_idempotency.new_key(),
        "empty_cell": AmountsForm(prefix="KEY"),
        "sums_shares": shown.sums_shares(rows, is_divisible=matrix.is_divisible),
        "counted": shown.counted(rows, access.permissions_of(user)),
        "competing": shown.competing(holders, policies()),
        "loans": shown.loans(lending.current_loans(user, usage)),
        "owed": shown.loans(lending.loans_in(user, windows.parse(SPAN, clock.now()))),
        "may_set": access.can(user, "limit.manage", None),
        "may_share": any(access.can(user, "limit.share", team) for team in teams),
    }
    return show(request, "frontend/limits.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: PageRequest, id_: int) -> HttpResponse:
    """Ask for confirmation; then remove the limit."""
    row = services.get_to_change(request.user, id_)
    if request.method == "POST":
        services.remove_limit(request.user, row)
        messages.success(request, f"Limit of {row.holder} for {row.scope} removed.")
        return redirect("limits")
    return show(request, "frontend/remove_limit.html", {"row": row}, partial="question")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: PageRequest) -> HttpResponse:
    """Fill in a limit, preview the change, and apply it. What is applied is what was previewed: the button that applies
    carries the digest of the previewed values, and other values are previewed again.
    """
    user = request.user
    form = LimitForm(user, request.POST or request.GET or None)
    if not form.has_holders:
        detail = "Operators set limits of departments and teams, leads those of projects and members of their team."
        raise Forbidden("lead", detail=detail, hint=f"Ask {', '.join(who_to_ask(user)) or 'an operator'}.")
    context: dict[str, Any] = {"form": form, "effect": None}
    if form.is_bound and form.is_valid():
        holder, scope, wanted = form.limit()
        try:
            if request.method == "POST" and request.POST.get("confirm") == form.digest():
                row = limit_services.set_limit(user, holder, scope, wanted)
                messages.success(request, f"Limit of {row.holder} for {row.scope} is now {row.nominal}.")
                return redirect("limits")
            context["effect"] = limit_services.effect(user, holder, scope, wanted)
            context |= {"digest": form.digest(), "is_changed": "confirm" in request.POST}
        except Invalid as problem:
            form.add_problem(problem)
    status = 400 if request.method == "POST" and form.errors else 200
    return show(request, "frontend/limit.html", context, status=status)


urlpatterns = [
    path("limits", index, name="limits"),
    path("limits/set", change, name="limit"),
    path("limits/<int:id_>/remove", remove, name="remove-limit"),
]
DOCS = "how-to/set-limits"
DOCS_OF = {"limits": "concepts/limits"}
