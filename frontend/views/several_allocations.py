"""Releases or extends several allocations, after a preview that names their owners and pods."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods

from allocations.requests import bulk_actions, pod_use, selectors
from allocations.requests.bulk_actions import MAX_AT_ONCE
from frontend.allocation_cards import cards_of
from frontend.forms import ExtendForm
from frontend.pages import PageRequest, page, release_page, show
from frontend.views.allocations import MAX_REASON
from portal.core.errors import Problem

MAX_NAMED = 10


@require_http_methods(["GET", "HEAD", "POST"])
@release_page
def release(request: PageRequest) -> HttpResponse:
    """Ask for confirmation; then release each that the person may release."""
    ids = _ids(request)
    if request.method == "POST" and ids:
        reason = request.POST.get("reason", "").replace("\x00", "").strip()[:MAX_REASON]
        released = bulk_actions.release_named(request.user, ids, reason, is_dry_run=False)
        done = [(one.row.name if one.row else one.id, one.problem) for one in released]
        return _tell(request, done, "Release of {} requested.", "Not released")
    return _preview(request, ids, {"action": "release"})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def extend(request: PageRequest) -> HttpResponse:
    """Ask for how long; then extend each that the person may extend."""
    ids, form = _ids(request), ExtendForm(request.POST or None)
    if ids and request.method == "POST" and form.is_valid():
        done = bulk_actions.extend_named(request.user, ids, form.chosen_hours())
        return _tell(request, done, "{} extended.", "Not extended")
    return _preview(request, ids, {"action": "extend", "form": form})


def _ids(request: PageRequest) -> list[str]:
    chosen = request.POST if request.method == "POST" else request.GET
    return chosen.getlist("id")[:MAX_AT_ONCE]


def _preview(request: PageRequest, ids: Sequence[str], context: dict[str, Any]) -> HttpResponse:
    rows = list(selectors.with_ids(selectors.visible(request.user), ids))
    if not rows:
        messages.error(request, "Choose at least one allocation.")
        return redirect("allocations")
    pods = pod_use.names_in_use(rows)
    may = f"can_{context['action']}"
    lines = [(card, pods.get(card.row.pk, []), getattr(card, may)) for card in cards_of(request.user, rows)]
    context |= {
        "lines": lines,
        "count": sum(is_allowed for *_, is_allowed in lines),
        "max_reason": MAX_REASON,
        "has_others": any(card.row.requested_by != request.user for card, *_ in lines),
    }
    return show(request, "frontend/several.html", context, status=400 if request.method == "POST" else 200)


def _tell(request: PageRequest, done: Sequence[tuple[str, Problem | None]], said: str, failed: str) -> HttpResponse:
    """Say how many were changed, and name those that were not, with the reason of each."""
    wrong = [f"{name} ({problem.detail})" for name, problem in done if problem]
    if count := len(done) - len(wrong):
        messages.success(request, said.format("1 allocation" if count == 1 else f"{count} allocations"))
    if wrong:
        more = f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        messages.error(request, f"{failed}: {', '.join(wrong[:MAX_NAMED])}{more}.")
    return redirect("allocations")


urlpatterns = [
    path("allocations/several/release", release, name="release-several"),
    path("allocations/several/extend", extend, name="extend-several"),
]
DOCS = "how-to/extend-and-release"
