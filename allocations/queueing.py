"""Who waits, and in which place: each team's queue of allocations and of tenants' own Jobs.

Kueue orders it. Where one queue is looked at, Kueue is asked, in one call for all that wait; lists over many teams, and
whoever asks while Kueue is away, take the order of the portal: by priority, then by age.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from allocations import jobs, reasons
from allocations.cluster import names, queue
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.jobs import Job
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import request
from allocations.rules import PRIORITIES
from allocations.states import Phase
from portal.tenants.models import Project, Team
from quotas.limits import names as queue_names
from quotas.limits import selectors

ADMITTED = (Phase.STARTING, Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING)
PRIORITY_NAMES = {value: name for name, value in PRIORITIES.items()}


class Place(NamedTuple):
    """``position`` counts from 1."""

    position: int
    of: int


@dataclass(frozen=True)
class Entry:
    """An allocation (``kind`` allocation) or a tenant's Job (job) in a queue. ``id``: the row's, or the Job's uid.

    ``asks``: slices by offering, or GPUs by resource for a Job, whose offering Kueue chooses.
    """

    kind: str
    id: UUID
    name: str
    project: str
    team: int
    offering: str
    count: int
    asks: Mapping[str, int]
    priority: str
    rank: int
    state: str
    reason: str
    message: str
    helps: str
    created_at: datetime
    workload: tuple[str, str]


class Ahead(NamedTuple):
    """What waits before another in the same queue: how many, and what they ask for together."""

    entries: int
    asks: Mapping[str, int]


@dataclass(frozen=True)
class Queue:
    """One team's queue. ``by`` says whose order it is: kueue, or portal while Kueue does not answer.

    ``others_waiting``: how many wait in the queues of other teams in the same tree of departments, which may want what
    is lent.
    """

    pending: list[tuple[Place, Entry, Ahead]]
    admitted: list[Entry]
    by: str
    others_waiting: int


class Load(NamedTuple):
    """Workloads by what Kueue says of the team's ClusterQueue, tenants' own Jobs too."""

    pending: int
    reserving: int
    admitted: int


def of_team(team: Team) -> Queue:
    """The queue of one team; asks Kueue once."""
    entries = _entries([team.pk])
    waiting = [entry for entry in entries if entry.state == Phase.QUEUED]
    told = _told(team.slug) if waiting else {}
    waiting.sort(key=lambda entry: (told or {}).get(entry.workload, len(entries)))
    return Queue(
        pending=[(Place(n, len(waiting)), entry, _ahead(waiting[: n - 1])) for n, entry in enumerate(waiting, start=1)],
        admitted=[entry for entry in entries if entry.state != Phase.QUEUED],
        by="portal" if told is None else "kueue",
        others_waiting=_others_waiting(team),
    )


def places(rows: Iterable[Allocation | Job]) -> dict[UUID, Place]:
    """The place of each queued one in its team's queue as the portal orders it, in a fixed number of queries."""
    teams = {row.project.team_id for row in rows if _is_queued(row)}
    if not teams:
        return {}
    by_team: dict[int, list[Entry]] = defaultdict(list)
    for entry in _entries(teams):
        if entry.state == Phase.QUEUED:
            by_team[entry.team].append(entry)
    return {
        entry.id: Place(n, len(waiting)) for waiting in by_team.values() for n, entry in enumerate(waiting, start=1)
    }


def place(row: Allocation | Job) -> Place | None:
    """The place of one as Kueue has it now, else as the portal orders; None when it is not queued."""
    if not _is_queued(row):
        return None
    told = _told(row.project.team.slug) or {}
    lease = row.workload if isinstance(row, Job) else names.lease(row.name)
    if position := told.get((row.project.namespace, lease)):
        return Place(position, len(told))
    return places([row]).get(row.uid if isinstance(row, Job) else row.pk)


def loads(teams: Iterable[Team]) -> dict[str, Load]:
    """Numbers of the teams' ClusterQueues as last seen, by the team's slug; zeros before they are. One query."""
    by_queue = {queue_names.cluster_queue(team.slug): team.slug for team in teams}
    seen = MirrorObject.objects.filter(kind="ClusterQueue", name__in=by_queue)
    found = {by_queue[row.name]: row.facts for row in seen}
    return {
        slug: Load(*(found.get(slug, {}).get(name, 0) for name in ("pending", "reserving", "admitted")))
        for slug in by_queue.values()
    }


def _is_queued(row: Allocation | Job) -> bool:
    return (row.state if isinstance(row, Job) else row.phase) == Phase.QUEUED


def _told(team: str) -> queue.Pending | None:
    """What Kueue says; None when it does not answer."""
    try:
        return queue.pending(connect(), queue_names.cluster_queue(team))
    except (ClusterUnavailable, ClusterRefused):
        return None


def _ahead(entries: Collection[Entry]) -> Ahead:
    asks: Counter[str] = Counter()
    for entry in entries:
        asks.update(entry.asks)
    return Ahead(len(entries), dict(asks))


def _others_waiting(team: Team) -> int:
    others = Team.objects.filter(department__in=selectors.tree_of(team.department_id)).exclude(pk=team.pk)
    queues = [queue_names.cluster_queue(slug) for slug in others.values_list("slug", flat=True)]
    rows = MirrorObject.objects.filter(kind="ClusterQueue", name__in=queues).values_list("facts__pending", flat=True)
    return sum(pending or 0 for pending in rows)


def _entries(teams: Collection[int]) -> list[Entry]:
    """All that waits in the teams' queues or has quota of them, by priority, then by age."""
    rows = request.rows().filter(project__team__in=teams, phase__in=(Phase.QUEUED, *ADMITTED), ended_at=None)
    seen = jobs.read(jobs.rows(Project.objects.filter(team__in=teams)))
    own = [_of_job(job) for job in seen if job.state not in jobs.ENDED]
    return sorted([*map(_of_allocation, rows), *own], key=lambda one: (-one.rank, one.created_at, one.id))


def _of_allocation(row: Allocation) -> Entry:
    return Entry(
        kind="allocation",
        id=row.pk,
        name=row.name,
        project=row.project.slug,
        team=row.project.team_id,
        offering=row.offering.key,
        count=row.count,
        asks={row.offering.key: row.count},
        priority=row.priority,
        rank=PRIORITIES[row.priority],
        state=row.phase,
        reason=row.reason,
        message=row.message,
        helps=reasons.queued(row.reason).helps if row.phase == Phase.QUEUED else "",
        created_at=row.created_at,
        workload=(row.project.namespace, names.lease(row.name)),
    )


def _of_job(job: Job) -> Entry:
    return Entry(
        kind="job",
        id=job.uid,
        name=job.name,
        project=job.project.slug,
        team=job.project.team_id,
        offering=job.offering,
        count=job.gpus,
        asks=job.asks,
        priority=PRIORITY_NAMES.get(job.priority, str(job.priority)),
        rank=job.priority,
        state=job.state,
        reason=job.reason,
        message=job.message,
        helps=job.helps,
        created_at=job.created_at,
        workload=(job.project.namespace, job.workload),
    )
