"""Actions on a project: leads rename it; operators change its settings, move it, guard it and archive it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from allocations.projects import adopt, editable, transfer
from allocations.projects import archive as project_archive
from frontend.pages import PageRequest, page, show
from frontend.presenters.amounts import held_per_hour
from frontend.tenant_forms import ArchiveForm, MoveForm, ProjectForm
from frontend.views.tenants import form_page
from portal.tenants import access, structure
from portal.tenants.models import Guard


@require_http_methods(["GET", "HEAD", "POST"])
@page
def project(request: PageRequest, slug: str) -> HttpResponse:
    """Show the project's name; to operators also the settings of its namespace."""
    row, settings = editable.project_settings(request.user, slug)
    known = {name: getattr(row, name) for name in settings}
    back = reverse("team", args=[row.team.slug])
    words = {"title": f"Project {row.slug}", "button": "Save", "back": back}
    words["cost_url"] = reverse("project-cost", args=[row.slug])

    def change(values: dict[str, Any]) -> str:
        structure.change_project(request.user, row, values)
        return f"Project {row.slug} saved."

    form = ProjectForm(request.POST or None, initial=known, editable=settings)
    return form_page(request, form, change, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def move(request: PageRequest, slug: str) -> HttpResponse:
    """Move an empty project to another team."""
    row = access.project_for(request.user, slug)

    def act(values: dict[str, Any]) -> str:
        transfer.move(request.user, row, values["team"])
        return f"Project {row.slug} moved to team {row.team.slug}."

    words = {
        "title": f"Move {row.slug}",
        "button": "Move project",
        "back": "/tenants",
        "lead": f"Members of {row.team.slug} lose access to the namespace, and members of the new team get it. The "
        "project must have no active or queued GPUs. Past costs stay with the old team.",
    }
    return form_page(request, MoveForm(row, editable.teams(request.user), request.POST or None), act, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def archive(request: PageRequest, slug: str) -> HttpResponse:
    """Show what would end; then end it, and archive the project."""
    row = access.project_for(request.user, slug)
    form = ArchiveForm(row, request.POST if request.method == "POST" else None)
    if form.is_valid():
        project_archive.archive(request.user, row)
        messages.success(request, f"Project {row.slug} archived. Its allocations are being released.")
        return redirect("tenants")
    ends = project_archive.preview(request.user, row)
    saved = held_per_hour(ends.per_hour, ends.currency, ends.unpriced)
    context = {"project": row, "form": form, "ends": ends, "saved": saved}
    return show(request, "frontend/archive.html", context, status=400 if form.is_bound else 200)


@require_POST
@page
def unarchive(request: PageRequest, slug: str) -> HttpResponse:
    row = access.project_for(request.user, slug)
    project_archive.unarchive(request.user, row)
    messages.success(request, f"Project {row.slug} restored.")
    return redirect("tenants")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def guard(request: PageRequest, slug: str) -> HttpResponse:
    """Show what the guard of an adopted namespace would refuse, and set its mode."""
    row = access.project_for(request.user, slug)
    if request.method == "POST":
        structure.set_guard(request.user, row, request.POST.get("guard", ""))
        does = "refuses" if row.guard == Guard.ENFORCE else "only warns about"
        done = f"The admission guard of {row.namespace} now {does} pods that use GPUs without the portal."
        messages.success(request, done)
        return redirect("guard", row.slug)
    context = {"project": row, "waiting": adopt.refused_pods(request.user, row)}
    return show(request, "frontend/guard.html", context)


urlpatterns = [
    path("projects/<str:slug>", project, name="project"),
    path("projects/<str:slug>/move", move, name="move"),
    path("projects/<str:slug>/archive", archive, name="archive"),
    path("projects/<str:slug>/unarchive", unarchive, name="unarchive"),
    path("projects/<str:slug>/guard", guard, name="guard"),
]
DOCS = "concepts/tenants"
DOCS_OF = {"move": "how-to/move-a-project", "archive": "how-to/archive-a-project", "guard": "how-to/adopt-a-namespace"}
