"""Members of a team, as its leads manage them.

A lead sets roles in the own team, up to lead; platform roles are not set here. New people come by invitation
(`portal.tenants.invitations`), or an operator adds them. A team keeps a lead: only operators, who can name another,
remove the last one.
"""

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.audit.entries import audit
from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.locks import RowLock
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.actors import Actor
from portal.tenants.models import Membership, PlatformRole, Role, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


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


def add(actor: Actor, team: Team, username: str, role: str) -> Membership:
    """Give the person `username` the role in the team without an invitation, whatever it was before: operators only.

    Raises NotVisible, Forbidden; Invalid for an unknown or inactive name, or an unknown role.
    """
    access.require(actor, "member.manage", team)
    if not access.can(actor, "member.add", team):
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
    return record(actor, team, person, role)


def set_role(actor: Actor, team: Team, username: str, role: str, lock: RowLock[Membership] | None = None) -> Membership:
    """Change the role of the member `username`.

    Raises NotVisible (also for non-members, existing or not), Forbidden; Invalid for an inactive person or an unknown
    role; Refused for the last lead.
    """
    access.require(actor, "member.manage", team)
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
            _keep_a_lead(actor, team, person)
        return record(actor, team, person, role)


def remove(actor: Actor, team: Team, username: str) -> None:
    """Remove the person from the team; no effect for a non-member. Raises as `set_role` does."""
    access.require(actor, "member.manage", team)
    person = User.objects.filter(username=username).first() if "\x00" not in username else None
    if person is None:
        return
    with transaction.atomic():
        _keep_a_lead(actor, team, person)
        known = Membership.objects.select_for_update().filter(team=team, user=person).first()
        if known is not None:
            known.delete()
            target, before = f"{team.slug}/{username}", {"role": known.role}
            audit(actor.username, "member.remove", target, team=team.slug, before=before)
            enqueue_people(team)


def record(actor: Actor, team: Team, user: User, role: str) -> Membership:
    """Write the role of `user` in the team, whatever it was before, for the two above and who accepts an invitation:
    they check who may. Raises Invalid for an unknown role.
    """
    if role not in Role.values:
        raise Invalid({"role": [f"Use one of {', '.join(Role.values)}."]})
    with transaction.atomic():
        before = Membership.objects.select_for_update().filter(team=team, user=user).first()
        if before is not None and before.role == role:
            return before
        membership, _ = Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
        audit(
            actor.username,
            "member.set",
            f"{team.slug}/{user.username}",
            team=team.slug,
            before={"role": before.role if before else None},
            after={"role": role},
        )
        enqueue_people(team)
    return membership


def enqueue_people(team: Team) -> None:
    """Enqueue the platform for service accounts, and the projects for their role bindings."""
    found = team.projects.filter(archived_at=None).values_list("cluster", "slug")
    workqueue.enqueue(*targets.platforms(), *(targets.project(*one) for one in found))


def lock_leads(team: Team) -> list[int]:
    """Lock the team's active leads until the transaction ends, and return their ids."""
    leads = Membership.objects.filter(team=team, role=Role.LEAD, user__is_active=True).order_by("pk")
    return list(leads.select_for_update(of=("self",), no_key=True).values_list("user_id", flat=True))


def _keep_a_lead(actor: Actor, team: Team, person: User) -> None:
    """Raise Refused if `person` is the team's only active lead."""
    if lock_leads(team) == [person.pk] and not access.can(actor, "structure.manage", None):
        raise Refused(
            "last_lead",
            f"{person.username} is the only lead of {team.slug}.",
            "Make someone else lead first, or ask an operator.",
        )
