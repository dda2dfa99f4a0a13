"""Queue entries: allocations and tenants' own Jobs.

A `QueueItem` has only the columns that positions and sums need; an `Entry` has all that is shown.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Count, IntegerField, Q, When

from allocations.cluster import names
from allocations.domain import reasons
from allocations.domain.admission import PRIORITIES
from allocations.domain.custom_claim import SLICES_PATHS, slices
from allocations.domain.observed_facts import workload_facts
from allocations.domain.phases import RESERVING, Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.queues import job_refusals, jobs
from allocations.queues.jobs import Job, Unfinished
from portal.core.reading import Columns, Part, read_tables
from portal.tenants.models import Project

PRIORITY_NAMES = {value: name for name, value in PRIORITIES.items()}


@dataclass(frozen=True)
class Entry:
    """An allocation (``kind`` allocation) or a tenant's Job (``kind`` job) in a queue.

    ``id`` is the allocation's id or the Job's uid. ``requests`` are slices by offering; for a Job, GPUs by resource,
    since Kueue chooses its offering. ``member`` requested the allocation; a Job names nobody.
    """

    kind: str
    id: UUID
    name: str
    project: str
    offering: str
    count: int
    requests: Mapping[str, int]
    priority: str
    state: str
    reason: str
    message: str
    hint: str
    member: str = ""


class QueueItem(NamedTuple):
    """An allocation or Job that is queued or has quota. ``order`` sorts by priority, then by age."""

    order: tuple[int, datetime, UUID]
    team: int
    cluster: str
    is_job: bool
    is_queued: bool
    workload: tuple[str, str]
    requests: Mapping[str, int]

    @property
    def id(self) -> UUID:
        return self.order[2]


class QueuedFirst(NamedTuple):
    """How many are queued by team, how many of them since before a time, and the first of all in order."""

    by_team: Counter[int]
    long_by_team: Counter[int]
    items: Sequence[QueueItem]


def first_of_teams(teams: Collection[int], size: int, before: datetime) -> QueuedFirst:
    """Return what is queued in these teams, with the first ``size`` items; one query."""
    counts, first, unfinished = read_tables(*_first(size, teams, before), jobs.unfinished_part(teams))
    queued = [one for one in of_rows(first, unfinished) if one.is_queued]
    counted = Counter({team: number for team, number, _ in counts})
    counted.update(one.team for one in queued if one.is_job)
    long = Counter({team: number for team, _, number in counts if number})
    long.update(one.team for one in queued if one.is_job and one.order[1] < before)
    return QueuedFirst(counted, long, queued[:size])


def _first(size: int, teams: Collection[int], before: datetime) -> tuple[Columns, Columns]:
    rank = Case(*(When(priority=name, then=-value) for name, value in PRIORITIES.items()), output_field=IntegerField())
    queued, columns = _allocations(Q(project__team__in=teams), (Phase.QUEUED,))
    long = Count("pk", filter=Q(phase_since__lt=before))
    by_team = queued.values("project__team_id").annotate(number=Count("pk"), long=long)
    return (
        Columns(by_team, ("project__team_id", "number", "long")),
        Columns(queued.annotate(rank=rank).order_by("rank", "created_at", "pk")[:size], columns),
    )


def parts(teams: Collection[int]) -> tuple[Part, Part]:
    """Return what to read for ``of_rows``: all items of the teams' queues that are queued or have quota."""
    rows = _allocations(Q(project__team__in=teams), (Phase.QUEUED, *RESERVING))
    return rows, jobs.unfinished_part(teams)


def queued_parts_beside(projects: Collection[int]) -> tuple[Part, Part]:
    """Return what to read for ``of_rows``: allocations that are queued in the queues of these projects' teams, and
    Jobs.
    """
    of_projects = Project.objects.filter(pk__in=projects).order_by().values("team")
    rows = _allocations(Q(project__team__in=of_projects), (Phase.QUEUED,))
    return rows, jobs.unfinished_part_beside(projects)


def _allocations(in_queues: Q, phases: Collection[Phase]) -> Columns:
    rows = Allocation.objects.filter(in_queues, phase__in=phases, ended_at=None)
    columns = (
        *("pk", "name", "priority", "created_at", "phase", "count"),
        *("offering__key", "project__team", "project__cluster", "project__namespace"),
        *(f"claim__{path}" for path in SLICES_PATHS),
    )
    return Columns(rows.order_by(), columns)


def of_rows(allocations: Iterable[Any], unfinished: Iterable[Any]) -> list[QueueItem]:
    """Return the items in order, by what ``parts`` read."""
    items = [
        QueueItem(
            order=(-PRIORITIES[row.priority], datetime.fromisoformat(row.created_at), UUID(row.pk)),
            team=row.project__team,
            cluster=row.project__cluster,
            is_job=False,
            is_queued=row.phase == Phase.QUEUED,
            workload=(row.project__namespace, names.lease(row.name)),
            requests={row.offering__key: slices(row.count, *(getattr(row, f"claim__{path}") for path in SLICES_PATHS))},
        )
        for row in allocations
    ]
    items += [_of_job(job, job.team, job.cluster, job.namespace) for job in jobs.unfinished(unfinished)]
    return sorted(items, key=lambda one: one.order)


def is_queued(row: Allocation | Job) -> bool:
    return row.state is jobs.State.QUEUED if isinstance(row, Job) else row.phase == Phase.QUEUED


def item(row: Allocation | Job) -> QueueItem:
    """Return an allocation or a Job as an item of its team's queue; needs its project."""
    if isinstance(row, Job):
        return _of_job(row, row.project.team_id, row.project.cluster_id, row.project.namespace)
    return QueueItem(
        order=(-PRIORITIES[row.priority], row.created_at, row.pk),
        team=row.project.team_id,
        cluster=row.project.cluster_id,
        is_job=False,
        is_queued=is_queued(row),
        workload=(row.project.namespace, names.lease(row.name)),
        requests={row.offering.key: row.slices},
    )


def _of_job(job: Job | Unfinished, team: int, cluster: str, namespace: str) -> QueueItem:
    return QueueItem(
        order=(-job.priority, job.created_at, job.uid),
        team=team,
        cluster=cluster,
        is_job=True,
        is_queued=job.state is jobs.State.QUEUED,
        workload=(namespace, job.workload),
        requests=job.requests,
    )


def full_entries(items: Collection[QueueItem]) -> dict[UUID, Entry]:
    """Return the entries of some items by id, without those that are gone by now."""
    rows = spec_of_row.rows().filter(pk__in=[one.id for one in items if not one.is_job])
    projects = Project.objects.filter(team__in={one.team for one in items})
    workloads = jobs.rows(projects).filter(facts__job__uid__in=[str(one.id) for one in items if one.is_job])
    entries = [*map(_allocation_entry, rows), *map(_job_entry, job_refusals.with_refusals(jobs.read(workloads)))]
    return {entry.id: entry for entry in entries}


def kueue_message(row: Allocation) -> str:
    """Return Kueue's own message about why the allocation waits for quota; "" if it does not, or says no more."""
    if row.phase != Phase.QUEUED:
        return ""
    leases = MirrorObject.objects.filter(cluster=row.project.cluster_id, kind="Workload")
    lease = leases.filter(namespace=row.project.namespace, name=names.lease(row.name)).first()
    return reasons.kueue_message(workload_facts(lease).get("conditions", {})) if lease else ""


def _allocation_entry(row: Allocation) -> Entry:
    return Entry(
        kind="allocation",
        id=row.pk,
        name=row.name,
        project=row.project.slug,
        offering=row.offering.key,
        count=row.slices,
        requests={row.offering.key: row.slices},
        priority=row.priority,
        state=row.phase,
        reason=row.reason,
        message=row.message,
        hint=reasons.queued(row.reason).hint if row.phase == Phase.QUEUED else "",
        member=row.requested_by.username,
    )


def _job_entry(job: Job) -> Entry:
    return Entry(
        kind="job",
        id=job.uid,
        name=job.name,
        project=job.project.slug,
        offering=job.offering,
        count=job.gpus,
        requests=job.requests,
        priority=PRIORITY_NAMES.get(job.priority, str(job.priority)),
        state=job.state,
        reason=job.reason,
        message=job.message,
        hint=job.hint,
    )
