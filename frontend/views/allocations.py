"""The page of one allocation, and its actions."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from allocations.connect.connection import USABLE, connect, label_line
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.queues import entries
from allocations.requests import forecast, pod_use, selectors, services
from allocations.requests.pod_use import UsingPod
from frontend.allocation_cards import cards_of
from frontend.forms import ExtendForm
from frontend.pages import PageRequest, essential_page, page, release_page, show
from frontend.poll_version import unchanged, version
from frontend.presenters import amounts, phases
from frontend.presenters.allocations import Card, event
from frontend.presenters.connecting import examples
from frontend.presenters.pods import count, pod_lines
from frontend.presenters.waiting import Waiting, waiting
from portal.core import clock
from portal.core.errors import Invalid
from portal.yaml_text import to_yaml
from quotas.costs import idle_holds

MAX_REASON = 200
NO_PODS = {"pod_count": "", "pod_nodes": (), "idle": ""}


@require_safe
@essential_page
def allocation(request: PageRequest, id_: UUID) -> HttpResponse:
    """Show one allocation; for a poll only its live part, or nothing if nothing changed."""
    current = version(selectors.listed(request.user).filter(pk=id_))
    if same := unchanged(request, current):
        return same
    row = selectors.get(request.user, id_)
    card = _gpu(request, row)
    ending = phases.badge(row)
    context = {
        "card": card,
        "row": row,
        "kueue_message": entries.kueue_message(row),
        "waiting": _waiting(row),
        "version": current,
        "events": [event(transition, ending) for transition in selectors.timeline(row)],
        "was_phase": request.GET.get("phase", ""),
        "was_usable": request.GET.get("usable", ""),
        **_use(card),
        **_pod_facts(row, pod_use.pods(row)),
    }
    if not request.htmx:
        context["manifests"] = _manifests(row)
    return show(request, "frontend/allocation.html", context, partial="live")


def _gpu(request: PageRequest, row: Allocation) -> Card:
    return cards_of(request.user, [row])[0]


def _use(card: Card) -> dict[str, Any]:
    """Return the examples with their shell commands, once the slices are held."""
    return {"examples": examples(card.row) if card.can_connect else [], "label_line": label_line(card.row)}


def _pod_facts(row: Allocation, found: Sequence[UsingPod]) -> dict[str, Any]:
    """Return how many pods use what is held, on which nodes they are, and for how long there was none; one query."""
    if row.held_since is None or row.ended_at is not None:
        return NO_PODS
    since = idle_holds.since({row.pk: row.held_since}).get(row.pk)
    return {
        "pod_count": count(found),
        "pod_nodes": sorted({pod.node for pod in found if pod.node and pod.state in pod_use.ON_A_NODE}),
        "idle": amounts.span(clock.now() - since) if since else "",
    }


def _waiting(row: Allocation) -> Waiting | None:
    is_queued = row.phase == Phase.QUEUED
    return waiting(row, forecast.next_start(row, clock.now())) if is_queued else None


@require_safe
@page
def pods(request: PageRequest, id_: UUID) -> HttpResponse:
    """Show the pods that use an allocation, with their state and events; a part of its page, and one of its own."""
    row = selectors.get(request.user, id_)
    found = pod_use.pods(row)
    events = pod_use.events_of(row, found)
    context = {
        "row": row,
        "pods": pod_lines(found, events or {}),
        "has_events": events is not None,
        "is_held": row.phase in USABLE,
        "label_line": label_line(row),
        **_pod_facts(row, found),
    }
    return show(request, "frontend/pods.html", context, partial="part")


def _manifests(row: Allocation) -> list[dict[str, str]]:
    return [
        {
            "title": f"{content['kind']} {content['metadata']['name']}",  # type: ignore[index]
            "yaml": to_yaml(content),
        }
        for content, _ in selectors.manifests(row)
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@release_page
def release(request: PageRequest, id_: UUID) -> HttpResponse:
    """Ask for confirmation, in a dialog or on a page; then release the slices."""
    row = selectors.releasable(request.user, id_)
    if request.method == "POST":
        services.release(request.user, row, request.POST.get("reason", "").replace("\x00", "").strip()[:MAX_REASON])
        messages.success(request, f"Release of {row.name} requested.")
        return redirect("allocation", row.pk)
    context = {
        "row": row,
        "card": _gpu(request, row),
        "is_own": row.requested_by == request.user,
        "pods": [pod.name for pod in pod_use.pods(row) if pod.state in pod_use.ON_A_NODE],
        "max_reason": MAX_REASON,
    }
    return show(request, "frontend/release.html", context, partial="question")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def extend(request: PageRequest, id_: UUID) -> HttpResponse:
    """Extend the allocation."""
    row = selectors.extendable(request.user, id_)
    form = ExtendForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.extend(request.user, row, form.chosen_hours())
        except Invalid as problem:
            form.add_problem(problem)
        else:
            messages.success(request, f"{row.name} extended. It is now requested {spec_of_row.time(row).in_words()}.")
            return redirect("allocation", row.pk)
    context = {"row": row, "card": _gpu(request, row), "form": form}
    return show(request, "frontend/extend.html", context, partial="question", status=400 if form.is_bound else 200)


@require_POST
@page
def retry(request: PageRequest, id_: UUID) -> HttpResponse:
    row = services.retry(request.user, selectors.get(request.user, id_))
    messages.success(request, f"{row.name} is queued again.")
    return redirect("allocation", row.pk)


@require_POST
@page
def kubeconfig(request: PageRequest, id_: UUID) -> HttpResponse:
    """Return the person's own kubeconfig as a file. A POST, since it creates a token."""
    given = connect(request.user, selectors.get(request.user, id_))
    return HttpResponse(
        given.kubeconfig,
        content_type="application/yaml",
        headers={"Content-Disposition": 'attachment; filename="gpu-portal.kubeconfig"'},
    )


urlpatterns = [
    path("allocations/<uuid:id_>", allocation, name="allocation"),
    path("allocations/<uuid:id_>/release", release, name="release"),
    path("allocations/<uuid:id_>/extend", extend, name="extend"),
    path("allocations/<uuid:id_>/retry", retry, name="retry"),
    path("allocations/<uuid:id_>/kubeconfig", kubeconfig, name="kubeconfig"),
    path("allocations/<uuid:id_>/pods", pods, name="allocation-pods"),
]
DOCS = "how-to/extend-and-release"
DOCS_OF = {"allocation": "how-to/connect", "allocation-pods": "how-to/connect"}
