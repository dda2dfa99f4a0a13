"""All tenants in one tree, for operators and auditors; operators make and change departments and teams here."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from allocations.projects import adopt, transfer
from frontend.forms import Form
from frontend.pages import PageRequest, page, show
from frontend.presenters.tenants import tree
from frontend.tenant_forms import DepartmentForm, NewDepartmentForm, NewProjectForm, NewTeamForm, TeamForm
from portal.core.errors import Invalid, Refused
from portal.tenants import access, services, structure


@require_safe
@page
def tenants(request: PageRequest) -> HttpResponse:
    access.require(request.user, "platform.view", None)
    context = {"tree": tree(), "may_manage": access.can(request.user, "structure.manage", None)}
    return show(request, "frontend/tenants.html", context)


def form_page(
    request: PageRequest, form: Form, act: Callable[[dict[str, Any]], str], words: Mapping[str, str]
) -> HttpResponse:
    """A form on a page of its own. ``act`` does what a good one says, and tells it in a sentence; ``words``: ``title``,
    ``button``, and ``back``, where it leads when done."""
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                with transaction.atomic():
                    done = act(form.cleaned_data)
            except (Invalid, Refused) as problem:
                form.refuse(problem)
            else:
                messages.success(request, done)
                return redirect(words["back"])
    return show(request, "frontend/form.html", {"form": form, **words}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_department(request: PageRequest) -> HttpResponse:
    access.require(request.user, "structure.manage", None)

    def make(values: dict[str, Any]) -> str:
        made = services.create_department(
            values["slug"], values["name"], parent=values["parent"], actor=request.user.username
        )
        return f"The department {made.slug} is there."

    words = {"title": "New department", "button": "Make it", "back": "/tenants"}
    return form_page(request, NewDepartmentForm(request.POST or None), make, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_team(request: PageRequest) -> HttpResponse:
    access.require(request.user, "structure.manage", None)

    def make(values: dict[str, Any]) -> str:
        made = services.create_team(values["department"], values["slug"], values["name"], actor=request.user.username)
        return f"The team {made.slug} is there. Give it a lead, and limits."

    words = {"title": "New team", "button": "Make it", "back": "/tenants"}
    return form_page(request, NewTeamForm(request.POST or None), make, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_project(request: PageRequest) -> HttpResponse:
    """A project in a namespace of its own, or in one that is there already."""
    access.require(request.user, "structure.manage", None)
    form = NewProjectForm(request.POST or None)

    def make(values: dict[str, Any]) -> str:
        team, slug, name, namespace = (values[key] for key in ("team", "slug", "name", "namespace"))
        if values["adopt"]:
            adopt.adopt(request.user, team, slug, name, namespace or slug, **form.settings())
            return f"The project {slug} adopts {namespace or slug}. Its guard warns until you have it refuse."
        services.create_project(team, slug, name, namespace=namespace, actor=request.user.username, **form.settings())
        return f"The project {slug} is there."

    return form_page(request, form, make, {"title": "New project", "button": "Make it", "back": "/tenants"})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def department(request: PageRequest, slug: str) -> HttpResponse:
    """Rename a department, or put it within another."""
    row = access.department_for(request.user, slug)
    access.require(request.user, "structure.manage", None)
    known = {"name": row.name, "parent": row.parent}

    def change(values: dict[str, Any]) -> str:
        structure.rename(row, values["name"], actor=request.user.username)
        transfer.move_department(row, values["parent"], actor=request.user.username)
        return f"The department {row.slug} is as you said."

    words = {"title": f"Department {row.slug}", "button": "Save", "back": "/tenants"}
    return form_page(request, DepartmentForm(request.POST or None, initial=known), change, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def team(request: PageRequest, slug: str) -> HttpResponse:
    """Rename a team, or move it to another department."""
    row = access.team_for(request.user, slug)
    access.require(request.user, "structure.manage", row)
    known = {"name": row.name, "department": row.department}

    def change(values: dict[str, Any]) -> str:
        structure.rename(row, values["name"], actor=request.user.username)
        transfer.move_team(row, values["department"], actor=request.user.username)
        return f"The team {row.slug} is as you said."

    words = {"title": f"Team {row.slug}", "button": "Save", "back": "/tenants"}
    return form_page(request, TeamForm(request.POST or None, initial=known), change, words)
