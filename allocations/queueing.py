"""Who waits, and in which place: the order of each team's queue, by priority, then by age.

Kueue orders so too, but counts tenants' own queued Jobs as well; so one allocation looked at alone is asked of Kueue,
and lists take the order of the rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from allocations.cluster import names, queue
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import request
from allocations.rules import PRIORITIES
from allocations.states import Phase
from portal.tenants.models import Team
from quotas.limits import names as queue_names


class Place(NamedTuple):
    """``position`` counts from 1."""

    position: int
    of: int


@dataclass(frozen=True)
class Waiting:
    allocation: UUID
    name: str
    project: str
    offering: str
    count: int
    priority: str
    reason: str
    message: str


class Load(NamedTuple):
    """Workloads by what Kueue says of the team's ClusterQueue, tenants' own Jobs too."""

    pending: int
    reserving: int
    admitted: int


def places(rows: Iterable[Allocation]) -> dict[UUID, Place]:
    """The place of each queued row in its team's queue, in one query."""
    queued = [row for row in rows if row.phase == Phase.QUEUED]
    if not queued:
        return {}
    found: dict[UUID, Place] = {}
    for waiting in _waiting({row.project.team_id for row in queued}).values():
        found |= {who.allocation: Place(n, len(waiting)) for n, who in enumerate(waiting, start=1)}
    return found


def place(row: Allocation) -> Place | None:
    """The place of one row as Kueue has it now, else by the rows; None when it is not queued."""
    if row.phase != Phase.QUEUED:
        return None
    cluster_queue = queue_names.cluster_queue(row.project.team.slug)
    try:
        told = queue.position(connect(), cluster_queue, row.project.namespace, names.lease(row.name))
    except (ClusterUnavailable, ClusterRefused):
        told = None
    return Place(*told) if told else places([row]).get(row.pk)


def pending(team: Team) -> list[Waiting]:
    """The team's queued allocations in their order."""
    return _waiting([team.pk]).get(team.pk, [])


def load(team: Team) -> Load:
    """Numbers of the team's ClusterQueue as last seen; zeros before it is."""
    seen = MirrorObject.objects.filter(kind="ClusterQueue", name=queue_names.cluster_queue(team.slug)).first()
    facts = seen.facts if seen else {}
    return Load(facts.get("pending", 0), facts.get("reserving", 0), facts.get("admitted", 0))


def _waiting(teams: Collection[int]) -> dict[int, list[Waiting]]:
    rows = request.rows().filter(project__team__in=teams, phase=Phase.QUEUED, ended_at=None)
    waiting: dict[int, list[Waiting]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (-PRIORITIES[r.priority], r.created_at, r.pk)):
        waiting[row.project.team_id].append(
            Waiting(
                row.pk,
                row.name,
                row.project.slug,
                row.offering.key,
                row.count,
                row.priority,
                row.reason,
                row.message,
            )
        )
    return waiting
