"""Object limits of a project: read by everybody who sees the project, set by operators."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods

from allocations.projects import editable
from frontend.object_limits_form import ObjectLimitsForm
from frontend.pages import PageRequest, page, show
from portal.core.errors import Invalid
from portal.tenants import access, structure
from portal.tenants import object_limits as limits
from portal.tenants.models import Project


@require_http_methods(["GET", "HEAD", "POST"])
@page
def object_limits(request: PageRequest, slug: str) -> HttpResponse:
    """Show the table of kinds, and to operators the form that changes it."""
    if request.method != "POST":
        row = access.project_for(request.user, slug)
        form = ObjectLimitsForm(initial=_known(row), is_adopted=row.adopted)
        return _show(request, row, form if editable.may_manage(request.user) else None)
    row = editable.project(request.user, slug)
    form = ObjectLimitsForm(request.POST, is_adopted=row.adopted)
    if form.is_valid():
        try:
            structure.change_project(request.user, row, form.settings(), _locked)
        except Invalid as problem:
            form.add_problem(problem)
        else:
            messages.success(request, f"Object count quota of {row.slug} saved.")
            return redirect("object-limits", row.slug)
    return _show(request, row, form, status=400)


def _locked(row: Project) -> Project:
    return Project.objects.select_for_update().get(pk=row.pk)


def _known(row: Project) -> dict[str, int]:
    return {**limits.numbers(row.object_limits, is_adopted=row.adopted), "config_size_kib": row.config_size_kib}


def _show(request: PageRequest, row: Project, form: ObjectLimitsForm | None, status: int = 200) -> HttpResponse:
    counts = limits.numbers(row.object_limits, is_adopted=row.adopted)
    kinds: list[dict[str, Any]] = []
    for name, kind in limits.OBJECT_KINDS.items():
        size = limits.size_kib(name, row.config_size_kib)
        mib, default = f"{counts[name] * size / 1024:.1f}", kind.usual(is_adopted=row.adopted)
        kinds.append({"kind": kind, "number": counts[name], "default": default, "size_kib": size, "mib": mib})
    stored = limits.stored_mib(row.object_limits, row.config_size_kib, is_adopted=row.adopted)
    context = {"project": row, "form": form, "kinds": kinds, "stored": stored, "bound": settings.PROJECT_STORE_MIB}
    return show(request, "frontend/object_limits.html", context, status=status)


urlpatterns = [
    path("projects/<str:slug>/objects", object_limits, name="object-limits"),
]
DOCS = "how-to/object-limits"
