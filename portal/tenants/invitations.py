"""Invitations, by which leads bring people into their team.

Nobody is looked up when an invitation is created, so neither the answer nor its timing tells who exists. Whoever signs
in with the username, or has the e-mail address, finds it and accepts or declines.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.reading import Part, Rows
from portal.tenants import access, members
from portal.tenants.models import Invitation, Membership, Role, Team, User

MAX_PENDING = 100
"""Invitations of one team that are not answered."""


def invite(user: User, team: Team, invitee: str, role: str) -> Invitation:
    """Create an invitation for `INVITATION_DAYS`, replacing an earlier one to the same name.

    Raises NotVisible, Forbidden; Invalid for an impossible role or name; Refused for a current member, whom leads see
    anyway, and above `MAX_PENDING`.
    """
    access.require(user, "member.manage", team)
    invitee = invitee.strip()
    _check(invitee, role)
    if Membership.objects.filter(team=team, user__username=invitee).exists():
        raise Refused("already_member", f"{invitee} is in {team.slug} already.", "Change the role of the member.")
    now = clock.now()
    with transaction.atomic():
        Invitation.objects.filter(team=team, expires_at__lte=now).delete()
        others = Invitation.objects.filter(team=team).exclude(invitee=invitee)
        if others.count() >= MAX_PENDING:
            raise Refused(
                "too_many_invitations",
                f"{team.slug} has {MAX_PENDING} invitations that nobody answered, which is the limit.",
                "Withdraw one first.",
            )
        offer = {
            "role": role,
            "invited_by": user,
            "created_at": now,
            "expires_at": now + timedelta(days=settings.INVITATION_DAYS),
        }
        row, _ = Invitation.objects.update_or_create(team=team, invitee=invitee, defaults=offer)
        _audit(user, "create", row, after={"role": role, "expires_at": row.expires_at})
    return row


def set_or_invite(user: User, team: Team, username: str, role: str) -> Membership | Invitation:
    """Set the role of a member; a person from outside is added by an operator, and invited by a lead.

    Raises what `members.set_role`, `members.add` and `invite` raise.
    """
    if members.member(team, username):
        return members.set_role(user, team, username, role)
    if access.can(user, "member.add", team):
        return members.add(user, team, username, role)
    return invite(user, team, username, role)


def pending(user: User) -> QuerySet[Invitation]:
    """Return the unanswered invitations to the teams whose members `user` manages."""
    rows = Invitation.objects.filter(expires_at__gt=clock.now()).select_related("team", "invited_by")
    if access.can(user, "member.manage", None):
        return rows
    led = Membership.objects.filter(user=user, role=Role.LEAD, user__is_active=True)
    return rows.filter(team__in=led.values("team"))


def received(user: User) -> QuerySet[Invitation]:
    """Return the unanswered invitations of `user`."""
    own_invitations = Q(invitee=user.username)
    if user.email:
        own_invitations |= Q(invitee__iexact=user.email)
    return Invitation.objects.filter(own_invitations, expires_at__gt=clock.now()).select_related(
        "team__department", "invited_by"
    )


def received_part(user: User) -> Part:
    """Return what to read of the unanswered invitations of `user`, for callers that read them with other tables."""
    return Rows(received(user))


def accept(user: User, id_: int) -> Membership:
    """Accept the invitation; a member of the team keeps the current role.

    Raises NotVisible for an invitation that `user` does not have (any more); Refused if the inviter may no longer
    invite.
    """
    with transaction.atomic():
        row = _own(user, id_)
        if not access.can(row.invited_by, "member.manage", row.team):
            raise Refused(
                "invitation_void",
                f"{row.invited_by.username}, who invited you, no longer leads {row.team.slug}.",
                f"Ask a lead of {row.team.slug} to invite you again.",
            )
        membership = Membership.objects.filter(team=row.team, user=user).first()
        _audit(user, "accept", row, after={"role": membership.role if membership else row.role})
        Invitation.objects.filter(pk__in=received(user).filter(team=row.team).values("pk")).delete()
        return membership or members.record(user, row.team, user, row.role)


def decline(user: User, id_: int) -> None:
    """Decline the invitation. Raises NotVisible as `accept` does."""
    with transaction.atomic():
        row = _own(user, id_)
        _audit(user, "decline", row)
        row.delete()


def withdraw(user: User, id_: int) -> None:
    """Withdraw an invitation. Raises NotVisible, Forbidden."""
    with transaction.atomic():
        row = Invitation.objects.select_for_update(of=("self",)).select_related("team").filter(pk=id_).first()
        if row is None:
            raise NotVisible("The invitation")
        access.require(user, "member.manage", row.team)
        _audit(user, "withdraw", row)
        row.delete()


def _own(user: User, id_: int) -> Invitation:
    row = received(user).select_for_update(of=("self",)).filter(pk=id_).first()
    if row is None:
        raise NotVisible("The invitation", hint="GET /me/invitations lists yours.")
    return row


def _check(invitee: str, role: str) -> None:
    errors = {}
    most = Invitation._meta.get_field("invitee").max_length or 0
    if not invitee or len(invitee) > most or not invitee.isprintable():
        errors["invitee"] = [f"Give a username or an e-mail address of at most {most} characters."]
    if role not in Role.values:
        errors["role"] = [f"Use one of {', '.join(Role.values)}."]
    if errors:
        raise Invalid(errors)


def _audit(user: User, verb: str, row: Invitation, after: dict[str, object] | None = None) -> None:
    target = f"{row.team.slug}/{row.invitee}"[:250]
    before = None if verb == "create" else {"role": row.role}
    audit(user.username, f"invitation.{verb}", target, team=row.team.slug, before=before, after=after)
