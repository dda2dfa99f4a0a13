"""Write operations on departments, teams, projects, people, tokens and memberships.

`portal.tenants.structure` changes them later, `portal.tenants.members` is what leads may do, `portal.tenants.people`
what operators may. Each function validates, writes in one transaction with an audit entry, and enqueues what the
cluster needs. Permission is checked by the callers: these two, `portal.tenants.invitations` and
`allocations.projects.organization`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from portal.audit.entries import audit
from portal.clusters import registry
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.locks import advisory_lock
from portal.tenants import structure, tokens
from portal.tenants.models import (
    ApiToken,
    Department,
    Egress,
    Exposure,
    Guard,
    Membership,
    PlatformRole,
    PodSecurity,
    Project,
    Role,
    Scope,
    Team,
    User,
)
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

SYSTEM = "system"
Row = TypeVar("Row", bound=models.Model)


def create_department(slug: str, name: str, *, parent: Department | None = None, actor: str = SYSTEM) -> Department:
    """Create a department, within `parent` if given; raise Invalid if that would be too deep."""
    with transaction.atomic(), advisory_lock("departments"):
        department = Department(slug=slug, name=name, parent=parent)
        structure.check_place(department, parent)
        _insert(department)
        structure.record_parent(department)
        audit(actor, "department.create", slug, after={"name": name, "parent": parent.slug if parent else None})
        workqueue.enqueue(*targets.platforms())
    return department


def create_team(department: Department, slug: str, name: str, *, actor: str = SYSTEM) -> Team:
    with transaction.atomic():
        team = _insert(Team(slug=slug, name=name, department=department))
        structure.record_parent(team)
        audit(actor, "team.create", slug, team=slug, after={"name": name, "department": department.slug})
        workqueue.enqueue(*targets.platforms())
    return team


def create_project(
    team: Team,
    slug: str,
    name: str,
    *,
    cluster: str = "",
    namespace: str = "",
    pod_security: str = PodSecurity.RESTRICTED,
    egress: str = Egress.NONE,
    exposure: str = Exposure.CLUSTER,
    admin_access: bool = False,
    object_limits: Mapping[str, int | None] | None = None,
    config_size_kib: int | None = None,
    adopt: bool = False,
    actor: str = SYSTEM,
) -> Project:
    """Create a project, in the environment's cluster unless given; its namespace has the project's name unless given.

    `adopt` takes an existing namespace: its guard only warns at first (`Guard.AUDIT`), and the namespace outlives the
    project.
    """
    stores = structure.checked_store(None, object_limits, config_size_kib, is_adopted=adopt)
    with transaction.atomic():
        project = _insert(
            Project(
                slug=slug,
                name=name,
                team=team,
                cluster_id=cluster or registry.own(),
                namespace=namespace or slug,
                pod_security=pod_security,
                egress=egress,
                exposure=exposure,
                admin_access=admin_access,
                **stores,
                adopted=adopt,
                guard=Guard.AUDIT if adopt else Guard.ENFORCE,
            )
        )
        after = {
            "team": team.slug,
            "namespace": project.namespace,
            "pod_security": pod_security,
            "egress": egress,
            "exposure": exposure,
            "admin_access": admin_access,
            **stores,
            "adopted": adopt,
        }
        audit(actor, "project.create", slug, team=team.slug, project=slug, after=after)
        workqueue.enqueue(targets.platform(project.cluster_id), targets.project(project.cluster_id, slug))
    return project


def create_user(
    username: str,
    password: str,
    *,
    platform_role: str = PlatformRole.NONE,
    email: str = "",
    actor: str = SYSTEM,
) -> User:
    """Create a person who signs in by password; operators also get Django's admin."""
    user = User(username=username, platform_role=platform_role, email=email)
    user.set_password(password)
    with transaction.atomic():
        _insert(user)
        audit(actor, "user.create", username, after={"platform_role": str(platform_role)})
    return user


def set_password(user: User, password: str, *, actor: str = SYSTEM) -> None:
    user.set_password(password)
    with transaction.atomic():
        user.save(update_fields=["password"])
        password_was_set(user, actor=actor)


def password_was_set(user: User, *, actor: str) -> None:
    audit(actor, "user.set_password", user.username)
    revoke_tokens(user, actor=actor)


def require_operator_left(user: User) -> None:
    """Raise Refused ``last_operator`` if the changed person was the only active operator, and no longer is one."""
    operators = User.objects.filter(platform_role=PlatformRole.OPERATOR, is_active=True)
    is_one = user.is_active and user.platform_role == PlatformRole.OPERATOR
    if not is_one and operators.filter(pk=user.pk).exists() and not operators.exclude(pk=user.pk).exists():
        raise Refused(
            "last_operator", f"{user.username} is the only active operator.", "Make someone else operator first."
        )


def save_person(user: User, changed: Sequence[str], *, actor: str = SYSTEM) -> None:
    """Save an operator's changes of a person; who is no longer active loses access to the cluster too.

    Raises Refused ``last_operator`` if nobody could give the role back.
    """
    with transaction.atomic(), advisory_lock("operators"):
        require_operator_left(user)
        known = User.objects.filter(pk=user.pk).first()
        user.save()
        fields = [field.name for field in User._meta.concrete_fields if field.name in {*changed} - {"password"}]
        before = {name: getattr(known, name) for name in fields} if known else None
        if not user.is_active:
            revoke_tokens(user, actor=actor)
        audit(actor, "user.save", user.username, before=before, after={name: getattr(user, name) for name in fields})
        for team in Team.objects.filter(memberships__user=user):
            _enqueue_people(team)


def add_member(team: Team, user: User, role: str, *, actor: str = SYSTEM) -> Membership:
    """Give `user` the role `role` in `team`, whatever it was before."""
    if role not in Role.values:
        raise Invalid({"role": [f"Use one of {', '.join(Role.values)}."]})
    with transaction.atomic():
        before = Membership.objects.select_for_update().filter(team=team, user=user).first()
        if before is not None and before.role == role:
            return before
        membership, _ = Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
        audit(
            actor,
            "member.set",
            f"{team.slug}/{user.username}",
            team=team.slug,
            before={"role": before.role if before else None},
            after={"role": role},
        )
        _enqueue_people(team)
    return membership


def remove_member(team: Team, user: User, *, actor: str = SYSTEM) -> None:
    with transaction.atomic():
        known = Membership.objects.select_for_update().filter(team=team, user=user).first()
        if known is not None:
            known.delete()
            target, before = f"{team.slug}/{user.username}", {"role": known.role}
            audit(actor, "member.remove", target, team=team.slug, before=before)
            _enqueue_people(team)


def issue_token(
    user: User,
    name: str,
    scopes: Sequence[str],
    ttl: timedelta | None = None,
    *,
    expires_at: datetime | None = None,
    parent: ApiToken | None = None,
    actor: str = SYSTEM,
) -> tuple[ApiToken, str]:
    """Create a token of `user`; return it with its secret, which is not stored.

    `parent` is the token of the request, if any: the new one has no more scopes, and ends no later.
    """
    if not scopes or set(scopes) - set(Scope.values):
        raise Invalid({"scopes": [f"Give at least one of {', '.join(Scope.values)}."]})
    tokens.check_scopes(scopes, parent)
    prefix, secret = tokens.generate()
    now = clock.now()
    with transaction.atomic():
        row = _insert(
            ApiToken(
                user=user,
                name=name,
                prefix=prefix,
                digest=tokens.digest(secret),
                scopes=[scope for scope in Scope.values if scope in scopes],
                created_at=now,
                expires_at=tokens.end(now, now + ttl if ttl is not None else expires_at, parent),
                parent=_still_works(parent) if parent else None,
            )
        )
        after = {"name": name, "scopes": row.scopes, "expires_at": row.expires_at}
        audit(actor, "token.issue", f"{user.username}/{prefix}", after=after)
    return row, secret


def _still_works(token: ApiToken) -> ApiToken:
    """Return the token, locked so that it is not revoked while another is created with it."""
    found = ApiToken.objects.select_for_update().filter(pk=token.pk, revoked_at=None).first()
    if found is None:
        raise Forbidden("token", detail="The token of this request was revoked.", hint="Use another token.")
    return found


def revoke_token(user: User, token_id: int, *, actor: str = SYSTEM) -> None:
    """Revoke a token of `user` and those created with it; repeating it changes nothing.

    Raises NotVisible for another person's token.
    """
    with transaction.atomic():
        row = ApiToken.objects.select_for_update().filter(user=user, pk=token_id).first()
        if row is None:
            raise NotVisible("The token")
        family = [row]
        while family:
            for token in family:
                _revoke(user, token, actor)
            family = list(ApiToken.objects.select_for_update().filter(parent__in=family).order_by("pk"))


def revoke_tokens(user: User, *, actor: str = SYSTEM) -> None:
    """Revoke all tokens of `user`: whoever had the password may have made or seen one."""
    with transaction.atomic():
        for token in ApiToken.objects.select_for_update().filter(user=user, revoked_at=None).order_by("pk"):
            _revoke(user, token, actor)


def _revoke(user: User, row: ApiToken, actor: str) -> None:
    if row.revoked_at is None:
        row.revoked_at = clock.now()
        row.save(update_fields=["revoked_at"])
        before, after = {"revoked_at": None}, {"revoked_at": row.revoked_at}
        audit(actor, "token.revoke", f"{user.username}/{row.prefix}", before=before, after=after)


def _insert(row: Row) -> Row:
    """Insert a valid row; raise Invalid naming wrong fields, or Refused for a name that is taken."""
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        raise Invalid(error.message_dict) from error
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        what = row._meta.verbose_name
        raise Refused("name_taken", f"A {what} of this name exists already.", "Choose another name.") from error
    return row


def _enqueue_people(team: Team) -> None:
    """Enqueue the platform for service accounts, and the projects for their role bindings."""
    found = team.projects.filter(archived_at=None).values_list("cluster", "slug")
    workqueue.enqueue(*targets.platforms(), *(targets.project(*one) for one in found))
