"""The permission table, and the functions that read it.

Roles of a person towards a team:
- `viewer`, `member`, `lead`: the membership in that team; none implies another;
- `owner`: a member or lead who created the thing in question;
- `operator`, `auditor`: the platform role, towards every team and the platform itself.

A team in which a person has no role is not visible to that person: the answer is then 404, not 403.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db.models import Model, Q, QuerySet

from portal.core.errors import Forbidden, NotVisible
from portal.core.quotation import named
from portal.core.reading import Columns, Rows, read_tables
from portal.tenants.actors import Actor, System
from portal.tenants.models import MAX_DEPTH, Department, Membership, PlatformRole, Project, Role, Team, User

READERS = frozenset({"viewer", "member", "lead", "operator", "auditor"})
USERS = frozenset({"member", "lead", "operator"})
OWN_OR_LEAD = frozenset({"owner", "lead", "operator"})
LEADS = frozenset({"lead", "operator"})
OPERATORS = frozenset({"operator"})
TEAM_ROLES = frozenset({"viewer", "member", "lead", "owner"})
NAMED_OPERATORS = 3
"""How many operators a refusal names."""

PERMISSIONS: dict[str, frozenset[str]] = {
    "project.view": READERS,
    "allocation.view": READERS,
    "allocation.request": USERS,
    "allocation.release": OWN_OR_LEAD,
    "allocation.extend": OWN_OR_LEAD,
    "allocation.approve": LEADS,
    "allocation.connect": USERS,  # hands out a kubeconfig, which auditors and viewers never get
    "project.connect": frozenset({"viewer", "member", "lead"}),  # the rights of their account: platform roles have none
    "cost.view": READERS,
    "view.share": USERS,  # a saved view of costs, with the team
    "view.delete": OWN_OR_LEAD,
    "member.manage": LEADS,
    "member.add": OPERATORS,  # without an invitation
    "person.manage": OPERATORS,  # people, their platform roles, and tokens of others
    "project.rename": LEADS,
    "structure.manage": OPERATORS,  # departments, teams, projects: make, move, adopt, archive
    "limit.manage": OPERATORS,
    "limit.share": LEADS,  # of projects and members, within what the team has
    "catalog.manage": OPERATORS,
    "announcement.manage": OPERATORS,
    "price.manage": OPERATORS,
    "claim.raw": OPERATORS,  # CEL of one's own, and access to devices that others hold
    "audit.view": LEADS | {"auditor"},  # leads: of their team
    "platform.view": frozenset({"operator", "auditor"}),
}

Person = User | AnonymousUser
RowT = TypeVar("RowT", bound=Model)


def roles(user: Actor, team: Team | None, owner: User | None = None) -> frozenset[str]:
    """Return the current roles of `user` towards `team`; none for a user who is signed out or inactive."""
    if isinstance(user, System):
        return OPERATORS
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    mine = Membership.objects.filter(user=user, team=team).first() if team is not None else None
    return _held(user, mine.role if mine else "", owner.pk if owner else None)


def _held(user: User, role: str, owner_id: int | None) -> frozenset[str]:
    owner = {"owner"} if owner_id == user.pk and role in (Role.MEMBER, Role.LEAD) else set()
    return frozenset(({user.platform_role, role} | owner) - {""})


def can(user: Actor, action: str, team: Team | None, owner: User | None = None) -> bool:
    """Return whether `user` may do `action` in `team` (None: platform-wide) on a thing that `owner` created."""
    enough = PERMISSIONS[action]
    if enough & roles(user, None) or not enough & TEAM_ROLES:
        return bool(enough & roles(user, None))
    return bool(enough & roles(user, team, owner))


def require(user: Actor, action: str, team: Team | None, owner: User | None = None) -> None:
    """Raise NotVisible for a team that `user` cannot see, and Forbidden naming the missing role, unless `can`.

    Functions that change something call this first, and those that find what a person may edit; a view does not. A
    sufficient platform role takes no query.
    """
    _note(action, team.pk if team else None, owner.pk if owner else None)
    if PERMISSIONS[action] & roles(user, None):
        return
    _require(roles(user, team, owner), action, is_of_team=team is not None)


def _require(held: frozenset[str], action: str, *, is_of_team: bool) -> None:
    if PERMISSIONS[action] & held:
        return
    if is_of_team and not held:
        raise NotVisible("This")
    if not PERMISSIONS[action] & TEAM_ROLES:
        raise _platform_role_missing(action)
    raise Forbidden(next(role for role in ("member", "lead") if role in PERMISSIONS[action]))


def _platform_role_missing(action: str) -> Forbidden:
    """Return the refusal of what no role in a team allows: platform roles are given by operators, not by leads."""
    enough = " or ".join(role for role in ("auditor", "operator") if role in PERMISSIONS[action])
    names = ", ".join(operators()[:NAMED_OPERATORS]) or "the administrator of the portal"
    return Forbidden(
        enough, detail=f"This needs the platform role {enough}.", hint=f"Operators give platform roles. Ask {names}."
    )


def operators() -> list[str]:
    """Return the names of the active operators, sorted."""
    rows = User.objects.filter(platform_role=PlatformRole.OPERATOR, is_active=True)
    return sorted(rows.values_list("username", flat=True))


@dataclass(frozen=True)
class Permissions:
    """A person's role in every team, read once, for pages with many things. Answers like `can`."""

    user: Person
    role_in: Mapping[int, str]

    def can(self, action: str, team_id: int, owner_id: int | None = None) -> bool:
        return bool(PERMISSIONS[action] & self._roles(team_id, owner_id))

    def require(self, action: str, team_id: int, owner_id: int | None = None) -> None:
        """Raise what `access.require` raises."""
        _note(action, team_id, owner_id)
        _require(self._roles(team_id, owner_id), action, is_of_team=True)

    def _roles(self, team_id: int, owner_id: int | None) -> frozenset[str]:
        if not isinstance(self.user, User) or not self.user.is_active:
            return frozenset()
        return _held(self.user, self.role_in.get(team_id, ""), owner_id)


Asked = tuple[str, int | None, int | None]
"""A permission that was required: the action, and the ids of team and owner."""
_noted: ContextVar[list[Asked] | None] = ContextVar("permissions that were required", default=None)


def _note(*asked: *Asked) -> None:
    noted = _noted.get()
    if noted is not None and asked not in noted:
        noted.append(asked)


@contextmanager
def noting() -> Iterator[list[Asked]]:
    """Note which permissions are required within the block, so that they can be required again."""
    noted: list[Asked] = []
    before = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(before)


def require_again(user: Person, asked: Sequence[Asked]) -> None:
    """Raise what `require` raises, unless the person still has the permissions."""
    permissions = permissions_of(user) if asked else None
    for action, team_id, owner_id in asked:
        if permissions and team_id is not None:
            permissions.require(action, team_id, owner_id)
        else:
            require(user, action, None)


def permissions_of(user: Person) -> Permissions:
    """Return the permissions of `user` in every team, in one query."""
    (roles,) = read_tables(roles_in_teams(user))
    return Permissions(user, dict(roles))


def roles_in_teams(user: Person) -> Columns:
    """Return what to read for `Permissions`, for callers that read it with other tables: team and role."""
    own = Membership.objects.filter(user=user) if isinstance(user, User) else Membership.objects.none()
    return Columns(own.order_by(), ("team_id", "role"))


def sees_all(user: Person) -> bool:
    return isinstance(user, User) and user.is_active and user.platform_role != PlatformRole.NONE


def visible_teams(user: Person) -> QuerySet[Team]:
    """Return the teams whose things `user` may read."""
    return Team.objects.all() if sees_all(user) else Team.objects.filter(pk__in=_own_teams(user))


def own_teams(user: User) -> list[Team]:
    """Return the teams that `user` is in, by slug; one query."""
    return list(Team.objects.filter(memberships__user=user))


def visible_departments(user: Person) -> QuerySet[Department]:
    """Return the departments of the teams whose things `user` may read, and those above them."""
    if sees_all(user):
        return Department.objects.all()
    within = Q()
    for below in range(MAX_DEPTH):
        within |= Q(**{f"{'children__' * below}teams__in": visible_teams(user)})
    return Department.objects.filter(pk__in=Department.objects.filter(within).values("pk"))


def visible_projects(user: Person) -> QuerySet[Project]:
    """Return the projects whose things `user` may read, including archived ones, with team and department loaded."""
    rows = Project.objects.select_related("team__department")
    return rows if sees_all(user) else rows.filter(team__in=_own_teams(user))


def _own_teams(user: Person) -> QuerySet[Any, Any]:
    """Return the ids of the teams that `user` is in; none for a user who is signed out or inactive."""
    of_user = Membership.objects.filter(user=user) if isinstance(user, User) and user.is_active else None
    return (Membership.objects.none() if of_user is None else of_user).values("team")


def team_for(user: Person, slug: str) -> Team:
    """Return the team named `slug` with its department. Raises NotVisible."""
    team = None if "\x00" in slug else visible_teams(user).select_related("department").filter(slug=slug).first()
    if team is None:
        raise NotVisible(f"The team {named(slug)}", hint="GET /me lists your teams.")
    return team


def department_for(user: Person, slug: str) -> Department:
    """Return the department named `slug` with its parent. Raises NotVisible."""
    found = None if "\x00" in slug else visible_departments(user).select_related("parent").filter(slug=slug).first()
    if found is None:
        raise NotVisible(f"The department {named(slug)}", hint="GET /departments lists those of your teams.")
    return found


def project_for(user: Person, slug: str) -> Project:
    """Return the project named `slug`. Raises NotVisible."""
    (found,) = read_tables(project_named(user, slug))
    if not found:
        raise no_project(slug)
    return found[0]  # type: ignore[no-any-return]


OF_A_TEAM = ("team__slug", "team__name", "team__department")


def _of_teams(rows: QuerySet[Project]) -> QuerySet[Project]:
    """Return the projects with their teams, without the departments."""
    return rows.select_related(None).select_related("team")


def project_named(user: Person, slug: str) -> Rows:
    """Return what to read of the project named `slug`, if `user` may see it, for callers that read it with other
    tables; with team and department.
    """
    rows = Project.objects.none() if "\x00" in slug else visible_projects(user).filter(slug=slug)
    return Rows(rows.order_by())


def project_slugs(user: Person) -> Columns:
    """Return what to read for the slugs of the projects whose things `user` may read, sorted."""
    return Columns(visible_projects(user).order_by("slug"), ("slug",))


def projects_in_use(user: Person) -> Rows:
    """Return what to read of the projects whose things `user` may read and that are not archived, by slug: their slug
    and team. Who sees all sees hundreds.
    """
    return Rows(_of_teams(visible_projects(user).filter(archived_at=None)).only("slug", *OF_A_TEAM))


def no_project(slug: str) -> NotVisible:
    return NotVisible(f"The project {named(slug)}", hint="GET /me lists your projects.")


def for_platform(user: Person, rows: QuerySet[RowT]) -> QuerySet[RowT]:
    """Return the rows, for operators and auditors; raise Forbidden for everybody else."""
    require(user, "platform.view", None)
    return rows
