"""A team's page: members, invitations and projects; leads manage members."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.pages import PageRequest, page, show
from frontend.presenters.tenants import team_at_work
from frontend.tenant_forms import ROLES, InvitationForm, MemberForm
from portal.core.errors import Invalid, NotVisible, Refused
from portal.tenants import access, invitations, members
from portal.tenants.models import Membership, Team, User


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
    row = access.team_for(request.user, slug, "member.manage" if request.method == "POST" else "")
    may_add = access.can(request.user, "member.add", row)
    form, status = (MemberForm if may_add else InvitationForm)(request.POST or None), 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                said = _add_or_invite(
                    request.user, row, form.cleaned_data["username"], form.cleaned_data["role"], may_add
                )
            except (Invalid, Refused) as problem:
                form.add_problem(problem)
            else:
                messages.success(request, said)
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


def _add_or_invite(user: User, row: Team, username: str, role: str, may_add: bool) -> str:
    """Set the role of a member, or of a person whom an operator adds; else invite. Return the message to show."""
    if members.member(row, username):
        made = members.set_role(user, row, username, role)
        return f"{made.user.username} is {made.role} of {row.slug}."
    if may_add:
        made = members.add(user, row, username, role)
        return f"{made.user.username} is {made.role} of {row.slug}."
    invitation = invitations.invite(user, row, username, role)
    return f"{invitation.invitee} is invited as {role} of {row.slug}, until {invitation.expires_at:%-d %B %Y}."


@require_POST
@page
def withdraw(request: PageRequest, slug: str, invitation_id: int) -> HttpResponse:
    """Withdraw an invitation."""
    row = access.team_for(request.user, slug, "member.manage")
    found = invitations.pending(request.user).filter(team=row, pk=invitation_id).first()
    if found is None:
        raise NotVisible("The invitation")
    invitations.withdraw(request.user, invitation_id)
    messages.success(request, f"The invitation of {found.invitee} is withdrawn.")
    return redirect("team", row.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: PageRequest, slug: str, username: str) -> HttpResponse:
    """Ask for confirmation; then remove the person from the team."""
    row = access.team_for(request.user, slug, "member.manage")
    membership = members.member(row, username)
    if membership is None:
        raise NotVisible(f"The member {username} of {slug}")
    if request.method == "POST":
        members.remove(request.user, row, username)
        messages.success(request, f"{username} is no longer in {row.slug}.")
        return redirect("team", row.slug)
    return show(request, "frontend/remove.html", {"team": row, "membership": membership}, partial="question")
