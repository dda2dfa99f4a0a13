"""Reads all that the reconcile of one project depends on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet, Subquery

from allocations.cluster import names
from allocations.domain.objects import Applied, Ref, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile import mirror
from allocations.reconcile.engine import applied
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Columns, Rows, read_tables, relate
from portal.tenants.models import Membership, Project, Role
from portal.workqueue import targets
from portal.workqueue.targets import Target
from quotas.catalog.models import Offering
from quotas.limits.selectors import limits_with_quota


@dataclass(frozen=True)
class ProjectSurroundings:
    """What a project's objects depend on besides its row: the offerings of its cluster, the ids of the pools of which
    its team has quota, and its people's usernames by cluster role.
    """

    offerings: Sequence[Offering]
    pools: frozenset[int]
    people: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class ProjectState:
    """A project, its live allocations, its namespace's objects, and what was applied there, at one moment."""

    project: Project
    live: list[Allocation]
    snapshot: Snapshot
    applied: dict[Ref, Applied]
    surroundings: ProjectSurroundings


def _state_parts(cluster: str, slug: str, target: str) -> list[Columns | Rows]:
    own = Project.objects.filter(cluster=cluster, slug=slug)
    live = _live(Allocation.objects.select_related("requested_by"), own)
    return [
        Rows(own.select_related("team__department")),
        Rows(live),
        *mirror.parts_of_project(cluster, own),
        applied.part(Target(target)),
        *_parts(cluster, own, live),
    ]


_STATE = QueryTemplate(_state_parts, cluster=str, slug=str, target=str)


def read(cluster: str, slug: str) -> ProjectState | None:
    """Return the state of a project of the cluster, or None if there is none; one query.

    Raises MirrorStale as ``mirror.require_recent`` does.
    """
    target = targets.project(cluster, slug)
    found = read_tables(*_STATE.of(cluster=cluster, slug=slug, target=target))
    projects, live, objects, positions, records, offerings, *surroundings = found
    if not projects:
        return None
    mirror.require_recent_positions(positions)
    snapshot = mirror.of_parts(objects, positions)
    relate(live, project=projects, offering=offerings)
    offered = [one for one in offerings if one.flavor.accepted and one.flavor.cluster_id == cluster]
    return ProjectState(projects[0], live, snapshot, applied.of_rows(records), _surroundings(offered, *surroundings))


def read_surroundings(project: Project) -> ProjectSurroundings:
    """Return the surroundings of a project; one query."""
    own = Project.objects.filter(pk=project.pk)
    return _surroundings(*read_tables(*_parts(project.cluster_id, own, Allocation.objects.none())))


def live_rows(project: QuerySet[Project]) -> QuerySet[Allocation]:
    """Return the live allocations of a project with the relations of ``spec_of_row.rows()``."""
    return _live(spec_of_row.rows(), project)


def _live(rows: QuerySet[Allocation], project: QuerySet[Project]) -> QuerySet[Allocation]:
    return rows.filter(project=Subquery(project.values("pk")), ended_at=None).order_by("name")


def offerings(cluster: str) -> QuerySet[Offering]:
    """Return what the cluster's accepted flavors offer."""
    return _in_order(Offering.objects.filter(flavor__cluster=cluster, flavor__accepted=True))


def _in_order(rows: QuerySet[Offering]) -> QuerySet[Offering]:
    return rows.select_related("flavor").order_by("key")


def _parts(cluster: str, project: QuerySet[Project], live: QuerySet[Allocation]) -> tuple[Rows, Columns, Columns]:
    """Return what to read of the surroundings of a cluster's project; the offerings are also those of ``live``."""
    team = Subquery(project.values("team"))
    is_offered = Q(flavor__cluster=cluster, flavor__accepted=True)
    is_held = Q(pk__in=live.order_by().values("offering"))
    # Without an order, for which five tables would be joined.
    pools = limits_with_quota().filter(team=team).order_by()
    members = Membership.objects.filter(team=team, user__is_active=True).order_by()
    return (
        Rows(_in_order(Offering.objects.filter(is_offered | is_held))),
        Columns(pools, ("pool_id",)),
        Columns(members, ("user__username", "role")),
    )


def _surroundings(
    offerings: Sequence[Offering], pools: Sequence[Sequence[Any]], members: Sequence[Sequence[str]]
) -> ProjectSurroundings:
    return ProjectSurroundings(offerings, frozenset(pool for [pool] in pools if pool is not None), _people(members))


def _people(members: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the usernames by cluster role. Operators are left out: they use their own cluster credentials."""
    role_of = {Role.VIEWER: names.VIEWER_ROLE}
    people: dict[str, list[str]] = {names.MEMBER_ROLE: [], names.VIEWER_ROLE: []}
    for username, role in members:
        people[role_of.get(Role(role), names.MEMBER_ROLE)].append(username)
    return {role: tuple(sorted(usernames)) for role, usernames in people.items()}
