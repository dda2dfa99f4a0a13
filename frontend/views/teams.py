"""A team's page: who belongs to it and works where; leads decide about members."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from frontend.pages import PageRequest, page, show
from frontend.presenters.tenants import team_at_work
from frontend.tenant_forms import ROLES, MemberForm
from portal.core.errors import Invalid, NotVisible, Refused
from portal.tenants import access, members
from portal.tenants.models import Membership


@require_safe
@page
def teams(request: PageRequest) -> HttpResponse:
    """The teams the person sees; where it is one, its page."""
    found = list(access.visible_teams(request.user).select_related("department"))
    if len(found) == 1:
        return redirect("team", found[0].slug)
    own = dict(Membership.objects.filter(user=request.user).values_list("team_id", "role"))
    return show(request, "frontend/teams.html", {"teams": [(team, own.get(team.pk, "")) for team in found]})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def team(request: PageRequest, slug: str) -> HttpResponse:
    """Members and projects. A POST of leads gives a person a role."""
    row = access.team_for(request.user, slug)
    if request.method == "POST":
        access.require(request.user, "member.manage", row)
    form, status = MemberForm(request.POST or None), 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            values = form.cleaned_data
            try:
                made = members.set_role(request.user, row, values["username"], values["role"])
            except (Invalid, Refused) as problem:
                form.refuse(problem)
            else:
                messages.success(request, f"{made.user.username} is {made.role} of {row.slug}.")
                return redirect("team", row.slug)
    workers, places = team_at_work(row)
    context = {
        "team": row,
        "workers": workers,
        "places": places,
        "form": form,
        "roles": ROLES,
        "may_manage": access.can(request.user, "member.manage", row),
        "may_rename": access.can(request.user, "project.rename", row),
    }
    return show(request, "frontend/team.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: PageRequest, slug: str, username: str) -> HttpResponse:
    """Ask first; then take the person out of the team."""
    row = access.team_for(request.user, slug)
    access.require(request.user, "member.manage", row)
    membership = members.member(row, username)
    if membership is None:
        raise NotVisible(f"The member {username} of {slug}")
    if request.method == "POST":
        members.remove(request.user, row, username)
        messages.success(request, f"{username} is no longer in {row.slug}.")
        return redirect("team", row.slug)
    return show(request, "frontend/remove.html", {"team": row, "membership": membership}, partial="question")
