"""People and projects of the demo: department research, teams vision and language."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from portal.tenants import members, services, tokens
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, PlatformRole, Project, Role, Team, User

TEAMS = {"vision": "Vision", "language": "Language"}
PURPOSES = {"train": "training", "dev": "development"}
# username: (team, role in it, platform role, token scopes)
PEOPLE: dict[str, tuple[str, str, str, list[str]]] = {
    "vision-member": ("vision", Role.MEMBER, PlatformRole.NONE, ["read", "request"]),
    "vision-lead": ("vision", Role.LEAD, PlatformRole.NONE, ["read", "request", "approve"]),
    "language-member": ("language", Role.MEMBER, PlatformRole.NONE, ["read", "request"]),
    "language-lead": ("language", Role.LEAD, PlatformRole.NONE, ["read", "request", "approve"]),
    "operator": ("", "", PlatformRole.OPERATOR, ["read", "request", "approve", "admin"]),
    "auditor": ("", "", PlatformRole.AUDITOR, ["read"]),
}
TOKEN_TTL = timedelta(days=90)


@dataclass(frozen=True)
class Seeds:
    """Secrets by username and namespaces by project, for the demo."""

    passwords: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)


def seed(known: Seeds | None = None) -> Seeds:
    """Create what is missing; keep secrets of an earlier run (`known`) that still work."""
    known = known or Seeds()
    department = Department.objects.filter(slug="research").first() or services.create_department(
        SYSTEM, "research", "Research"
    )
    namespaces: dict[str, str] = {}
    for slug, name in TEAMS.items():
        team = Team.objects.filter(slug=slug).first() or services.create_team(SYSTEM, department, slug, name)
        for suffix, purpose in PURPOSES.items():
            project = _project(team, f"{slug}-{suffix}", f"{name} {purpose}")
            namespaces[project.slug] = project.namespace
    passwords: dict[str, str] = {}
    secrets_: dict[str, str] = {}
    for username, (team_slug, role, platform_role, scopes) in PEOPLE.items():
        user, passwords[username] = _person(username, platform_role, known.passwords)
        if team_slug:
            members.add(SYSTEM, Team.objects.get(slug=team_slug), username, role)
        secrets_[username] = _token(user, scopes, known.tokens)
    return Seeds(passwords=passwords, tokens=secrets_, namespaces=namespaces)


def are_the_first() -> bool:
    """Return whether the demo's people are all there, and nobody was before them: the database is a demo's."""
    usernames = User.objects.order_by("pk").values_list("username", flat=True)
    return usernames.filter(username__in=PEOPLE).count() == len(PEOPLE) and usernames.first() in PEOPLE


def _project(team: Team, slug: str, name: str) -> Project:
    return Project.objects.filter(slug=slug).first() or services.create_project(SYSTEM, team, slug, name)


def _person(username: str, platform_role: str, known: Mapping[str, str]) -> tuple[User, str]:
    user = User.objects.filter(username=username).first()
    password = known.get(username) or secrets.token_urlsafe(12)
    if user is None:
        return services.create_user(SYSTEM, username, password, platform_role=platform_role), password
    if not user.check_password(password):
        services.set_password(SYSTEM, user, password)
    return user, password


def _token(user: User, scopes: list[str], known: Mapping[str, str]) -> str:
    old = known.get(user.username, "")
    row = tokens.find(old)
    if row is not None and row.user_id == user.pk:
        return old
    return services.issue_token(SYSTEM, user, "demo", scopes, TOKEN_TTL)[1]
