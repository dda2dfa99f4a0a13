"""Members of a team, as its leads manage them.

A lead sets roles in the own team, up to lead; platform roles are not set here. New people come by invitation
(`portal.tenants.invitations`), or an operator adds them. A team keeps a lead: only operators, who can name another,
remove the last one.
"""

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.locks import RowLock
from portal.core.quotation import named
from portal.tenants import access, invitations, services
from portal.tenants.models import Invitation, Membership, PlatformRole, Role, Team, User


def visible(user: User, name: str = "") -> QuerySet[Membership]:
    """Return the memberships in the teams that the person sees, those whose person or team has ``name`` in its name."""
    rows = Membership.objects.filter(team__in=access.visible_teams(user)).select_related("team", "user")
    return rows.filter(Q(user__username__icontains=name) | Q(team__slug__icontains=name)) if name else rows


def with_platform_role(name: str = "") -> QuerySet[User]:
    """Return the operators and auditors, by name, those with ``name`` in it; for platform staff (`for_platform`)."""
    rows = User.objects.exclude(platform_role=PlatformRole.NONE).order_by("username")
    return rows.filter(username__icontains=name) if name else rows


def member(team: Team, username: str) -> Membership | None:
    if "\x00" in username:
        return None
    return Membership.objects.select_related("team", "user").filter(team=team, user__username=username).first()


def managed_team(user: User, slug: str) -> Team:
    """Return the team named `slug`, whose members `user` manages. Raises NotVisible, Forbidden."""
    team = access.team_for(user, slug)
    access.require(user, "member.manage", team)
    return team


def set_or_invite(user: User, team: Team, username: str, role: str) -> Membership | Invitation:
    """Set the role of a member; a person from outside is added by an operator, and invited by a lead.

    Raises what `set_role`, `add` and `invitations.invite` raise.
    """
    if member(team, username):
        return set_role(user, team, username, role)
    if access.can(user, "member.add", team):
        return add(user, team, username, role)
    return invitations.invite(user, team, username, role)


def add(user: User, team: Team, username: str, role: str) -> Membership:
    """Give the person `username` the role in the team without an invitation, whatever it was before: operators only.

    Raises NotVisible, Forbidden; Invalid for an unknown or inactive name, or an unknown role.
    """
    access.require(user, "member.manage", team)
    if not access.can(user, "member.add", team):
        raise Forbidden(
            "operator",
            detail="Only operators add members without an invitation.",
            hint="Invite the person, who then accepts: POST /invitations, or the page of the team.",
        )
    person = User.objects.filter(username=username).first() if "\x00" not in username else None
    if person is None:
        words = f"Nobody is called {named(username)} here. Create the person first: POST /people, or the admin."
        raise Invalid({"username": [words]})
    if not person.is_active:
        raise Invalid({"username": [f"{username} is not active. An operator activates people."]})
    return services.add_member(team, person, role, actor=user.username)


def set_role(user: User, team: Team, username: str, role: str, lock: RowLock[Membership] | None = None) -> Membership:
    """Change the role of the member `username`.

    Raises NotVisible (also for non-members, existing or not), Forbidden; Invalid for an inactive person or an unknown
    role; Refused for the last lead.
    """
    access.require(user, "member.manage", team)
    membership = member(team, username)
    if membership is None:
        raise NotVisible(f"The member {named(username)} of {team.slug}", hint="GET /members lists them.")
    person = membership.user
    with transaction.atomic():
        if lock is not None:
            lock_leads(team)  # before the row, in the order in which all who change a role do
            membership = lock(membership)
        if membership.role == role:
            return membership
        if not person.is_active:
            raise Invalid({"username": [f"{username} is not active. An operator activates people."]})
        if role != Role.LEAD:
            _keep_a_lead(user, team, person)
        return services.add_member(team, person, role, actor=user.username)


def remove(user: User, team: Team, username: str) -> None:
    """Remove the person from the team; no effect for a non-member. Raises as `set_role` does."""
    access.require(user, "member.manage", team)
    person = User.objects.filter(username=username).first() if "\x00" not in username else None
    if person is None:
        return
    with transaction.atomic():
        _keep_a_lead(user, team, person)
        services.remove_member(team, person, actor=user.username)


def lock_leads(team: Team) -> list[int]:
    """Lock the team's active leads until the transaction ends, and return their ids."""
    leads = Membership.objects.filter(team=team, role=Role.LEAD, user__is_active=True).order_by("pk")
    return list(leads.select_for_update(of=("self",), no_key=True).values_list("user_id", flat=True))


def _keep_a_lead(user: User, team: Team, person: User) -> None:
    """Raise Refused if `person` is the team's only active lead."""
    if lock_leads(team) == [person.pk] and not access.can(user, "structure.manage", None):
        raise Refused(
            "last_lead",
            f"{person.username} is the only lead of {team.slug}.",
            "Make someone else lead first, or ask an operator.",
        )
