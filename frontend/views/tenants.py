"""The organization as one tree, for operators and auditors; operators create and change departments and teams."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from allocations.projects import editable, organization
from frontend.base_form import Form, PageForm
from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters.tenants import rows, tree
from frontend.tenant_forms import DepartmentForm, NewDepartmentForm, NewProjectForm, NewTeamForm, TeamForm
from portal.core.errors import Invalid, Refused
from portal.tenants import access, services


@require_safe
@page
def tenants(request: PageRequest) -> HttpResponse:
    """Show departments, teams and projects as one table in the order of the tree."""
    context = {"rows": list(rows(tree(request.user))), "may_manage": editable.may_manage(request.user)}
    return show(request, "frontend/tenants.html", context)


def form_page(
    request: PageRequest, form: PageForm, act: Callable[[dict[str, Any]], str], words: Mapping[str, str]
) -> HttpResponse:
    """Show a form on a page of its own. ``act`` performs a valid one and returns the message to show; ``words``:
    ``title``, ``button``, and ``back``, the page afterwards.
    """
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                with transaction.atomic():
                    done = act(form.cleaned_data)
            except (Invalid, Refused) as problem:
                form.add_problem(problem)
            else:
                messages.success(request, done)
                return redirect(words["back"])
    return show(request, "frontend/form.html", {"form": form, **words}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_department(request: PageRequest) -> HttpResponse:
    form = NewDepartmentForm(editable.departments(request.user), request.POST or None)

    def make(values: dict[str, Any]) -> str:
        made = services.create_department(request.user, values["slug"], values["name"], values["parent"])
        return f"Department {made.slug} created."

    words = {"title": "New department", "button": "Create department", "back": "/tenants"}
    return form_page(request, form, make, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_team(request: PageRequest) -> HttpResponse:
    form = NewTeamForm(editable.departments(request.user), request.POST or None)

    def make(values: dict[str, Any]) -> str:
        made = services.create_team(request.user, values["department"], values["slug"], values["name"])
        return f"Team {made.slug} created. Next, add a lead and set limits."

    words = {"title": "New team", "button": "Create team", "back": "/tenants"}
    return form_page(request, form, make, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_project(request: PageRequest) -> HttpResponse:
    """Create a project in a namespace of its own, or adopt an existing one."""
    form = NewProjectForm(editable.teams(request.user), request.POST or None)

    def make(values: dict[str, Any]) -> str:
        team, slug, name = values["team"], values["slug"], values["name"]
        made = organization.create_project(request.user, team, slug, name, form.options())
        if made.adopted:
            return f"Project {slug} created in the existing namespace {made.namespace}. Its admission guard only warns."
        return f"Project {slug} created."

    return form_page(request, form, make, {"title": "New project", "button": "Create project", "back": "/tenants"})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def department(request: PageRequest, slug: str) -> HttpResponse:
    """Rename a department, or move it within another."""
    row = access.department_for(request.user, slug)
    known = {"name": row.name, "parent": row.parent}
    form = DepartmentForm(editable.departments(request.user), request.POST or None, initial=known)

    def change(values: dict[str, Any]) -> str:
        organization.change_department(request.user, row, values)
        return f"Department {row.slug} saved."

    words = {"title": f"Department {row.slug}", "button": "Save", "back": "/tenants"}
    return form_page(request, form, change, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def team(request: PageRequest, slug: str) -> HttpResponse:
    """Rename a team, or move it to another department."""
    row = access.team_for(request.user, slug)
    known = {"name": row.name, "department": row.department}
    form = TeamForm(editable.departments(request.user), request.POST or None, initial=known)

    def change(values: dict[str, Any]) -> str:
        organization.change_team(request.user, row, values)
        return f"Team {row.slug} saved."

    words = {"title": f"Team {row.slug}", "button": "Save", "back": "/tenants"}
    return form_page(request, form, change, words | {"delete_url": reverse("delete-team", args=[row.slug])})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def delete_team(request: PageRequest, slug: str) -> HttpResponse:
    """Ask for confirmation; then delete a team that never had a project or a quota."""
    row = editable.team(request.user, slug)

    def delete(values: dict[str, Any]) -> str:
        organization.delete_team(request.user, row)
        return f"Team {slug} deleted."

    words = {
        "title": f"Delete team {slug}?",
        "lead": "Only a team that never had a project or a quota can be deleted: costs refer to all others. "
        "Its members lose their role in it.",
        "button": "Delete team",
        "back": "/tenants",
    }
    return form_page(request, Form(request.POST if request.method == "POST" else None), delete, words)


urlpatterns = [
    path("tenants", tenants, name="tenants"),
    path("tenants/departments/new", new_department, name="new-department"),
    path("tenants/departments/<str:slug>/edit", department, name="edit-department"),
    path("tenants/teams/new", new_team, name="new-team"),
    path("tenants/teams/<str:slug>/edit", team, name="edit-team"),
    path("tenants/teams/<str:slug>/delete", delete_team, name="delete-team"),
    path("tenants/projects/new", new_project, name="new-project"),
]
DOCS = "concepts/tenants"
MENU = {"tenants": Item(ADMIN, 10, "Organization")}
