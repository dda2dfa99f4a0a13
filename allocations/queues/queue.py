"""Who waits, and in which place: each team's queue of allocations and of tenants' own Jobs.

Kueue orders it. Where one queue is looked at, Kueue is asked, in one call for all that wait; lists over many teams, and
whoever asks while Kueue is away, take the order of the portal: by priority, then by age. Of many that wait, one page is
read whole.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from allocations.cluster import names, pending_workloads
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.domain import reasons
from allocations.domain.admission import PRIORITIES
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.queues import entries as queue_entries
from allocations.queues import jobs
from allocations.queues.entries import Standing
from allocations.queues.jobs import Job
from portal.tenants.models import Project, Team
from quotas.limits import names as queue_names
from quotas.limits import selectors

PAGE_SIZE = 50
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
    offering: str
    count: int
    asks: Mapping[str, int]
    priority: str
    state: str
    reason: str
    message: str
    helps: str


class Ahead(NamedTuple):
    """What waits before another in the same queue: how many, and what they ask for together."""

    entries: int
    asks: Mapping[str, int]


@dataclass(frozen=True)
class Queue:
    """A page of one team's queue: ``pending`` of all ``waiting``, ``admitted`` of all ``holding``.

    ``by`` says whose order it is: kueue, or portal while Kueue does not answer.

    ``others_waiting``: how many wait in the queues of other teams in the same tree of departments, which may want what
    is lent.
    """

    pending: list[tuple[Place, Entry, Ahead]]
    admitted: list[Entry]
    waiting: int
    holding: int
    by: str
    others_waiting: int


class Load(NamedTuple):
    """Workloads by what Kueue says of the team's ClusterQueue, tenants' own Jobs too."""

    pending: int
    reserving: int
    admitted: int


def of_team(team: Team, *, pending_from: int = 1, holding_from: int = 1, size: int = PAGE_SIZE) -> Queue:
    """The queue of one team, ``size`` entries from these places on, which count from 1; asks Kueue once."""
    standing = queue_entries.of_teams([team.pk])
    queued = [one for one in standing if one.is_queued]
    holding = [one for one in standing if not one.is_queued]
    told = {cluster: _told(cluster, team.slug) for cluster in sorted({one.cluster for one in queued})}
    queued.sort(key=lambda one: (one.cluster, (told[one.cluster] or {}).get(one.workload, len(standing))))
    waiting = Counter(one.cluster for one in queued)
    start = pending_from - 1
    pending = list(zip(queued[start : start + size], _aheads(queued, start, size), strict=True))
    admitted = holding[holding_from - 1 : holding_from - 1 + size]
    entries = _entries([*(one for one, _ in pending), *admitted])
    return Queue(
        pending=[
            (Place(ahead.entries + 1, waiting[one.cluster]), entries[one.id], ahead)
            for one, ahead in pending
            if one.id in entries
        ],
        admitted=[entries[one.id] for one in admitted if one.id in entries],
        waiting=len(queued),
        holding=len(holding),
        by="portal" if None in told.values() else "kueue",
        others_waiting=_others_waiting(team),
    )


def places(rows: Iterable[Allocation | Job]) -> dict[UUID, Place]:
    """The place of each queued one in its team's queue of its cluster as the portal orders it, in a fixed number of
    queries."""
    queued = [row for row in rows if _is_queued(row)]
    if not queued:
        return {}
    asked = {row.uid if isinstance(row, Job) else row.pk for row in queued}
    counted: Counter[tuple[int, str]] = Counter()
    found: dict[UUID, tuple[tuple[int, str], int]] = {}
    for one in queue_entries.of_teams({row.project.team_id for row in queued}):
        if one.is_queued:
            line = one.team, one.cluster
            counted[line] += 1
            if one.id in asked:
                found[one.id] = (line, counted[line])
    return {id_: Place(position, counted[line]) for id_, (line, position) in found.items()}


def place(row: Allocation | Job) -> Place | None:
    """The place of one as Kueue has it now, else as the portal orders; None when it is not queued."""
    if not _is_queued(row):
        return None
    told = _told(row.project.cluster_id, row.project.team.slug) or {}
    lease = row.workload if isinstance(row, Job) else names.lease(row.name)
    if position := told.get((row.project.namespace, lease)):
        return Place(position, len(told))
    return places([row]).get(row.uid if isinstance(row, Job) else row.pk)


def loads(teams: Iterable[Team]) -> dict[str, Load]:
    """Numbers of the teams' ClusterQueues as last seen, of all clusters together, by the team's slug; zeros before they
    are. One query."""
    by_queue = {queue_names.cluster_queue(team.slug): team.slug for team in teams}
    seen = MirrorObject.objects.filter(kind="ClusterQueue", name__in=by_queue)
    found: Counter[tuple[str, str]] = Counter()
    for row in seen:
        found.update({(by_queue[row.name], name): row.facts.get(name) or 0 for name in Load._fields})
    return {slug: Load(*(found[slug, name] for name in Load._fields)) for slug in by_queue.values()}


def _is_queued(row: Allocation | Job) -> bool:
    return (row.state if isinstance(row, Job) else row.phase) == Phase.QUEUED


def _told(cluster: str, team: str) -> pending_workloads.Pending | None:
    """What Kueue says; None when it does not answer."""
    try:
        return pending_workloads.pending(connect(cluster), queue_names.cluster_queue(team))
    except (ClusterUnavailable, ClusterRefused):
        return None


def _aheads(queued: Sequence[Standing], start: int, size: int) -> list[Ahead]:
    """What waits in the same cluster before each of a page, added up in one pass; ``queued`` is by cluster."""
    cluster, entries, asks = "", 0, Counter[str]()
    found = []
    for n, one in enumerate(queued[: start + size]):
        if one.cluster != cluster:
            cluster, entries, asks = one.cluster, 0, Counter()
        if n >= start:
            found.append(Ahead(entries, dict(asks)))
        entries += 1
        asks.update(one.asks)
    return found


def _others_waiting(team: Team) -> int:
    others = Team.objects.filter(department__in=selectors.tree_of(team.department_id)).exclude(pk=team.pk)
    queues = [queue_names.cluster_queue(slug) for slug in others.values_list("slug", flat=True)]
    rows = MirrorObject.objects.filter(kind="ClusterQueue", name__in=queues).values_list("facts__pending", flat=True)
    return sum(pending or 0 for pending in rows)


def _entries(shown: Collection[Standing]) -> dict[UUID, Entry]:
    """These in full, by id; without what is gone by now."""
    rows = spec_of_row.rows().filter(pk__in=[one.id for one in shown if not one.is_job])
    projects = Project.objects.filter(team__in={one.team for one in shown})
    seen = jobs.rows(projects).filter(facts__job__uid__in=[str(one.id) for one in shown if one.is_job])
    entries = [*map(_of_allocation, rows), *map(_of_job, jobs.read(seen))]
    return {entry.id: entry for entry in entries}


def _of_allocation(row: Allocation) -> Entry:
    return Entry(
        kind="allocation",
        id=row.pk,
        name=row.name,
        project=row.project.slug,
        offering=row.offering.key,
        count=row.count,
        asks={row.offering.key: row.count},
        priority=row.priority,
        state=row.phase,
        reason=row.reason,
        message=row.message,
        helps=reasons.queued(row.reason).helps if row.phase == Phase.QUEUED else "",
    )


def _of_job(job: Job) -> Entry:
    return Entry(
        kind="job",
        id=job.uid,
        name=job.name,
        project=job.project.slug,
        offering=job.offering,
        count=job.gpus,
        asks=job.asks,
        priority=PRIORITY_NAMES.get(job.priority, str(job.priority)),
        state=job.state,
        reason=job.reason,
        message=job.message,
        helps=job.helps,
    )
