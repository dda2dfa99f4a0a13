"""Write operations on departments, teams, projects, people and tokens.

`portal.tenants.structure` changes departments, teams and projects later, `portal.tenants.members` who is in a team.
Each function takes who does it, checks permission, validates, writes in one transaction with an audit entry, and
enqueues what the cluster needs. Raises Forbidden, Invalid, and Refused for a name that is taken.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from portal.audit.entries import audit
from portal.clusters import registry
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access, members, structure, tokens
from portal.tenants.actors import Actor
from portal.tenants.models import ApiToken, Department, Guard, PlatformRole, Project, Scope, Team, User
from portal.tenants.project_options import ProjectOptions
from portal.workqueue import queue as workqueue
from portal.workqueue import targets

PEOPLE = "person.manage"
Row = TypeVar("Row", bound=models.Model)
DEFAULT_OPTIONS = ProjectOptions()


def create_department(actor: Actor, slug: str, name: str, parent: Department | None = None) -> Department:
    """Create a department, within `parent` if given; raise Invalid if that would be too deep."""
    access.require(actor, structure.ACTION, None)
    with transaction.atomic(), advisory_lock("departments"):
        department = Department(slug=slug, name=name, parent=parent)
        structure.check_place(department, parent)
        _insert(department)
        structure.record_parent(department)
        after = {"name": name, "parent": parent.slug if parent else None}
        audit(actor.username, "department.create", slug, after=after)
        workqueue.enqueue(*targets.platforms())
    return department


def create_team(actor: Actor, department: Department, slug: str, name: str) -> Team:
    """Create a team in the department."""
    access.require(actor, structure.ACTION, None)
    with transaction.atomic():
        team = _insert(Team(slug=slug, name=name, department=department))
        structure.record_parent(team)
        audit(actor.username, "team.create", slug, team=slug, after={"name": name, "department": department.slug})
        workqueue.enqueue(*targets.platforms())
    return team


def create_project(
    actor: Actor, team: Team, slug: str, name: str, options: ProjectOptions = DEFAULT_OPTIONS
) -> Project:
    """Create a project. Whether a namespace may be adopted is asked by `allocations.projects.organization`."""
    access.require(actor, structure.ACTION, None)
    values = vars(options) | structure.checked_store(
        None, options.object_limits, options.config_size_kib, is_adopted=options.adopt
    )
    cluster, adopted = values.pop("cluster") or registry.own(), values.pop("adopt")
    values |= {"namespace": options.namespace or slug, "adopted": adopted}
    with transaction.atomic():
        guard = Guard.AUDIT if adopted else Guard.ENFORCE
        project = _insert(Project(slug=slug, name=name, team=team, cluster_id=cluster, guard=guard, **values))
        after = {"team": team.slug, **values}
        audit(actor.username, "project.create", slug, team=team.slug, project=slug, after=after)
        workqueue.enqueue(targets.platform(project.cluster_id), targets.project(project.cluster_id, slug))
    return project


def create_user(
    actor: Actor, username: str, password: str, *, platform_role: str = PlatformRole.NONE, email: str = ""
) -> User:
    """Create a person who signs in by password; operators also get Django's admin."""
    access.require(actor, PEOPLE, None)
    user = User(username=username, platform_role=platform_role, email=email)
    user.set_password(password)
    with transaction.atomic():
        _insert(user)
        audit(actor.username, "user.create", username, after={"platform_role": str(platform_role)})
    return user


def set_password(actor: Actor, user: User, password: str) -> None:
    """Set the password of a person, whose tokens end with the old one."""
    access.require(actor, PEOPLE, None)
    user.set_password(password)
    with transaction.atomic():
        user.save(update_fields=["password"])
        password_was_set(actor, user)


def password_was_set(actor: Actor, user: User) -> None:
    """Note that the password of a person was set, as by Django's admin, and revoke the tokens."""
    access.require(actor, PEOPLE, None)
    audit(actor.username, "user.set_password", user.username)
    revoke_tokens(actor, user)


def require_operator_left(user: User) -> None:
    """Raise Refused ``last_operator`` if the changed person was the only active operator, and no longer is one."""
    operators = User.objects.filter(platform_role=PlatformRole.OPERATOR, is_active=True)
    is_one = user.is_active and user.platform_role == PlatformRole.OPERATOR
    if not is_one and operators.filter(pk=user.pk).exists() and not operators.exclude(pk=user.pk).exists():
        raise Refused(
            "last_operator", f"{user.username} is the only active operator.", "Make someone else operator first."
        )


def save_person(actor: Actor, user: User, changed: Sequence[str]) -> None:
    """Save an operator's changes of a person; who is no longer active loses access to the cluster too.

    Raises Refused ``last_operator`` if nobody could give the role back.
    """
    access.require(actor, PEOPLE, None)
    with transaction.atomic(), advisory_lock("operators"):
        require_operator_left(user)
        known = User.objects.filter(pk=user.pk).first()
        user.save()
        fields = [field.name for field in User._meta.concrete_fields if field.name in {*changed} - {"password"}]
        before = {name: getattr(known, name) for name in fields} if known else None
        if not user.is_active:
            revoke_tokens(actor, user)
        after = {name: getattr(user, name) for name in fields}
        audit(actor.username, "user.save", user.username, before=before, after=after)
        for team in Team.objects.filter(memberships__user=user):
            members.enqueue_people(team)


def issue_token(
    actor: Actor,
    user: User,
    name: str,
    scopes: Sequence[str],
    ttl: timedelta | None = None,
    *,
    expires_at: datetime | None = None,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token of `user`; return it with its secret, which is not stored.

    `parent` is the token of the request, if any: the new one has no more scopes, and ends no later.
    """
    _require_own(actor, user)
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
        audit(actor.username, "token.issue", f"{user.username}/{prefix}", after=after)
    return row, secret


def _require_own(actor: Actor, user: User) -> None:
    """Raise Forbidden unless the tokens are the actor's own, or the actor manages people."""
    if actor != user:
        access.require(actor, PEOPLE, None)


def _still_works(token: ApiToken) -> ApiToken:
    """Return the token, locked so that it is not revoked while another is created with it."""
    found = ApiToken.objects.select_for_update().filter(pk=token.pk, revoked_at=None).first()
    if found is None:
        raise Forbidden("token", detail="The token of this request was revoked.", hint="Use another token.")
    return found


def revoke_token(actor: Actor, user: User, token_id: int) -> None:
    """Revoke a token of `user` and those created with it; repeating it changes nothing.

    Raises NotVisible for another person's token.
    """
    _require_own(actor, user)
    with transaction.atomic():
        row = ApiToken.objects.select_for_update().filter(user=user, pk=token_id).first()
        if row is None:
            raise NotVisible("The token")
        family = [row]
        while family:
            for token in family:
                _revoke(actor, user, token)
            family = list(ApiToken.objects.select_for_update().filter(parent__in=family).order_by("pk"))


def revoke_tokens(actor: Actor, user: User) -> None:
    """Revoke all tokens of `user`: whoever had the password may have made or seen one."""
    _require_own(actor, user)
    with transaction.atomic():
        for token in ApiToken.objects.select_for_update().filter(user=user, revoked_at=None).order_by("pk"):
            _revoke(actor, user, token)


def _revoke(actor: Actor, user: User, row: ApiToken) -> None:
    if row.revoked_at is None:
        row.revoked_at = clock.now()
        row.save(update_fields=["revoked_at"])
        before, after = {"revoked_at": None}, {"revoked_at": row.revoked_at}
        audit(actor.username, "token.revoke", f"{user.username}/{row.prefix}", before=before, after=after)


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
