"""Departments, teams and projects as a tree, and the activity in a team."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from allocations.models import Allocation
from allocations.projects import archive
from portal.tenants import access
from portal.tenants.models import Department, Membership, Project, Team, User


@dataclass(frozen=True)
class TeamBranch:
    """A team with its projects, archived ones last."""

    team: Team
    projects: Sequence["ProjectRow"]


@dataclass(frozen=True)
class ProjectRow:
    """A project; ``remaining``: what keeps the namespace of an archived one from being deleted."""

    project: Project
    remaining: Sequence[str]

    @property
    def removal_command(self) -> str:
        return archive.removal_command(self.project)


@dataclass
class DepartmentNode:
    department: Department
    teams: list[TeamBranch] = field(default_factory=list)
    below: list["DepartmentNode"] = field(default_factory=list)


@dataclass(frozen=True)
class OrganizationRow:
    """A row of the table of the organization: a department, a team or a project, and how deep it is in the tree."""

    kind: str
    level: int
    row: Department | Team | Project
    of_project: ProjectRow | None = None


def rows(nodes: Iterable[DepartmentNode], level: int = 0) -> Iterator[OrganizationRow]:
    """Yield the tree as rows, from above to below."""
    for node in nodes:
        yield OrganizationRow("department", level, node.department)
        for branch in node.teams:
            yield OrganizationRow("team", level + 1, branch.team)
            for found in branch.projects:
                yield OrganizationRow("project", level + 2, found.project, found)
        yield from rows(node.below, level + 1)


def tree(user: User) -> list[DepartmentNode]:
    """Return all departments, with those within others below them; four queries. For operators and auditors."""
    nodes = {row.pk: DepartmentNode(row) for row in access.for_platform(user, Department.objects.order_by("slug"))}
    projects: dict[int, list[Project]] = {}
    found = list(Project.objects.order_by("archived_at", "slug"))
    remaining = archive.remaining(found)
    for project in found:
        projects.setdefault(project.team_id, []).append(project)
    for team in Team.objects.order_by("slug"):
        rows = [ProjectRow(p, remaining.get(p.slug, ())) for p in _in_use_first(projects.get(team.pk, []))]
        nodes[team.department_id].teams.append(TeamBranch(team, rows))
    for node in nodes.values():
        if node.department.parent_id is not None:
            nodes[node.department.parent_id].below.append(node)
    return [node for node in nodes.values() if node.department.parent_id is None]


def _in_use_first(projects: Sequence[Project]) -> list[Project]:
    return sorted(projects, key=lambda project: (project.archived_at is not None, project.slug))


@dataclass(frozen=True)
class MemberActivity:
    """A member, with the number of the person's live allocations in the team's projects."""

    membership: Membership
    live: int


@dataclass(frozen=True)
class ProjectActivity:
    """A project, with the number of its live allocations."""

    project: Project
    live: int


def team_at_work(team: Team) -> tuple[list[MemberActivity], list[ProjectActivity]]:
    """Return members, leads first, and projects; three queries."""
    live = Allocation.objects.filter(project__team=team, ended_at=None)
    pairs = list(live.values_list("requested_by_id", "project_id"))
    of_person, in_project = Counter(person for person, _ in pairs), Counter(project for _, project in pairs)
    order = {"lead": 0, "member": 1, "viewer": 2}
    members = sorted(
        Membership.objects.filter(team=team).select_related("user"),
        key=lambda row: (order[row.role], row.user.username),
    )
    places = _in_use_first(list(Project.objects.filter(team=team)))
    return (
        [MemberActivity(row, of_person[row.user_id]) for row in members],
        [ProjectActivity(project, in_project[project.pk]) for project in places],
    )
