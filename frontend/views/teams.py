"""A team's page: members, invitations and projects; leads manage members."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.pages import PageRequest, page, show
from frontend.presenters.tenants import team_at_work
from frontend.tenant_forms import ROLES, InvitationForm, MemberForm
from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.quotation import named
from portal.tenants import access, invitations, members
from portal.tenants.models import Invitation, Membership


@require_safe
@page
def teams(request: PageRequest) -> HttpResponse:
    """List the teams the person may see; redirect to the team if there is only one."""
    found = list(access.visible_teams(request.user).select_related("department"))
    if len(found) == 1:
        return redirect("team", found[0].slug)
    own = dict(Membership.objects.filter(user=request.user).values_list("team_id", "role"))
    return show(request, "frontend/teams.html", {"teams": [(team, own.get(team.pk, "")) for team in found]})


@require_http_methods(["GET", "HEAD", "POST"])
@page
def team(request: PageRequest, slug: str) -> HttpResponse:
    """Show members, invitations and projects. A POST changes a member's role or invites (leads), or adds
    (operators).
    """
    is_post = request.method == "POST"
    row = members.managed_team(request.user, slug) if is_post else access.team_for(request.user, slug)
    may_add = access.can(request.user, "member.add", row)
    form, status = (MemberForm if may_add else InvitationForm)(request.POST or None), 200
    if is_post:
        status = 400
        if form.is_valid():
            try:
                made = invitations.set_or_invite(request.user, row, **form.cleaned_data)
            except (Invalid, Refused) as problem:
                form.add_problem(problem)
            else:
                messages.success(request, _confirmation(made))
                return redirect("team", row.slug)
    workers, places = team_at_work(row)
    context = {
        "team": row,
        "workers": workers,
        "places": places,
        "form": form,
        "roles": ROLES,
        "may_manage": access.can(request.user, "member.manage", row),
        "may_add": may_add,
        "invitations": invitations.pending(request.user).filter(team=row),
        "may_connect": access.can(request.user, "project.connect", row),
        "may_rename": access.can(request.user, "project.rename", row),
    }
    return show(request, "frontend/team.html", context, status=status)


def _confirmation(made: Membership | Invitation) -> str:
    if isinstance(made, Membership):
        return f"{made.user.username} is now {made.role} of {made.team.slug}."
    until = timezone.localtime(made.expires_at)
    return f"{made.invitee} invited as {made.role} of {made.team.slug}, until {until:%-d %B %Y}."


@require_POST
@page
def withdraw(request: PageRequest, slug: str, invitation_id: int) -> HttpResponse:
    """Withdraw an invitation."""
    row = members.managed_team(request.user, slug)
    found = invitations.pending(request.user).filter(team=row, pk=invitation_id).first()
    if found is None:
        raise NotVisible("The invitation")
    invitations.withdraw(request.user, invitation_id)
    messages.success(request, f"Invitation of {found.invitee} withdrawn.")
    return redirect("team", row.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: PageRequest, slug: str, username: str) -> HttpResponse:
    """Ask for confirmation; then remove the person from the team."""
    row = members.managed_team(request.user, slug)
    membership = members.member(row, username)
    if membership is None:
        raise NotVisible(f"The member {named(username)} of {named(slug)}")
    if request.method == "POST":
        members.remove(request.user, row, username)
        messages.success(request, f"{username} removed from {row.slug}.")
        return redirect("team", row.slug)
    return show(request, "frontend/remove.html", {"team": row, "membership": membership}, partial="question")


urlpatterns = [
    path("teams", teams, name="teams"),
    path("teams/<str:slug>", team, name="team"),
    path("teams/<str:slug>/members/<str:username>/remove", remove, name="remove-member"),
    path("teams/<str:slug>/invitations/<int:invitation_id>/withdraw", withdraw, name="withdraw-invitation"),
]
DOCS = "how-to/members"
