"""A team's queue of allocations and Jobs, with positions.

Kueue decides the order. One queue is read from Kueue, in one call. Lists over many teams use the portal's order, by
priority and then by age; so does one queue while Kueue is unavailable. Of a long queue only one page is read in full.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple
from uuid import UUID

from allocations.cluster import pending_workloads
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.domain.observed_facts import cluster_queue_facts
from allocations.models import Allocation, MirrorObject
from allocations.queues import entries as queue_entries
from allocations.queues.entries import Entry, QueueItem
from allocations.queues.jobs import Job
from portal.core.reading import Batch, Columns, read_tables
from portal.tenants.models import Department, Team
from quotas.limits import names as queue_names
from quotas.limits import selectors

PAGE_SIZE = 50


class QueuePosition(NamedTuple):
    """A position in a queue, and the number of entries."""

    position: Annotated[int, "From 1."]
    of: int


class EntriesAhead(NamedTuple):
    """The number of entries before another one in the same queue, and the sum of their requests."""

    entries: int
    requests: Mapping[str, int]


@dataclass(frozen=True)
class Queue:
    """A page of one team's queue: ``pending`` of all ``waiting``, ``admitted`` of all ``holding``.

    ``ordered_by`` is kueue, or portal while Kueue does not answer. ``others_waiting`` is the number of entries in the
    queues of other teams in the same tree of departments, which may reclaim lent quota.
    """

    pending: list[tuple[QueuePosition, Entry, EntriesAhead]]
    admitted: list[Entry]
    waiting: int
    holding: int
    ordered_by: str
    others_waiting: int


class Load(NamedTuple):
    """Numbers of workloads in a team's ClusterQueue, including tenants' own Jobs."""

    pending: Annotated[int, "Workloads that wait, as Kueue counts them: tenants' own Jobs too."]
    reserving: Annotated[int, "Workloads with quota reserved."]
    admitted: int


def of_team(team: Team, *, pending_from: int = 1, holding_from: int = 1, size: int = PAGE_SIZE) -> Queue:
    """Return the queue of one team, ``size`` entries from these positions on; one request to Kueue for each cluster."""
    *read, departments, teams, cluster_queues = read_tables(*queue_entries.parts([team.pk]), *_tree_parts())
    items = queue_entries.of_rows(*read)
    queued = [one for one in items if one.is_queued]
    holding = [one for one in items if not one.is_queued]
    clusters = sorted({one.cluster for one in queued})
    kueue_orders = {cluster: _kueue_positions(cluster, team.slug) for cluster in clusters}
    queued.sort(key=lambda one: (one.cluster, (kueue_orders[one.cluster] or {}).get(one.workload, len(items))))
    waiting = Counter(one.cluster for one in queued)
    start = pending_from - 1
    pending = list(zip(queued[start : start + size], _entries_ahead(queued, start, size), strict=True))
    admitted = holding[holding_from - 1 : holding_from - 1 + size]
    entries = queue_entries.full_entries([*(one for one, _ in pending), *admitted])
    return Queue(
        pending=[
            (QueuePosition(ahead.entries + 1, waiting[one.cluster]), entries[one.id], ahead)
            for one, ahead in pending
            if one.id in entries
        ],
        admitted=[entries[one.id] for one in admitted if one.id in entries],
        waiting=len(queued),
        holding=len(holding),
        ordered_by="portal" if None in kueue_orders.values() else "kueue",
        others_waiting=_others_waiting(team, dict(departments), teams, cluster_queues),
    )


def positions(rows: Iterable[Allocation | Job]) -> dict[UUID, QueuePosition]:
    """Return the position of each queued one in its team's queue of its cluster, in the portal's order; one query."""
    return read_positions(rows, Batch())()


def read_positions(rows: Iterable[Allocation | Job], batch: Batch) -> Callable[[], dict[UUID, QueuePosition]]:
    """Add to the batch what ``positions`` reads; return the function that returns it. The rows need no relations."""
    queued = [row for row in rows if queue_entries.is_queued(row)]
    if not queued:
        return dict
    ids = {row.uid if isinstance(row, Job) else row.pk for row in queued}
    projects = {row.project.pk if isinstance(row, Job) else row.project_id for row in queued}
    parts = [batch.add(part) for part in queue_entries.queued_parts_beside(projects)]
    return lambda: _positions(ids, queue_entries.of_rows(*(part() for part in parts)))


def _positions(ids: Container[UUID], items: Iterable[QueueItem]) -> dict[UUID, QueuePosition]:
    counted: Counter[tuple[int, str]] = Counter()
    found: dict[UUID, tuple[tuple[int, str], int]] = {}
    for one in items:
        if one.is_queued:
            queue = one.team, one.cluster
            counted[queue] += 1
            if one.id in ids:
                found[one.id] = (queue, counted[queue])
    return {id_: QueuePosition(position, counted[queue]) for id_, (queue, position) in found.items()}


def position(row: Allocation | Job) -> QueuePosition | None:
    """Return the position that Kueue has for one, else that of the portal's order; None if it is not queued."""
    item = queue_entries.item(row)
    if not item.is_queued:
        return None
    kueue_positions = _kueue_positions(item.cluster, row.project.team.slug) or {}
    if position := kueue_positions.get(item.workload):
        return QueuePosition(position, len(kueue_positions))
    return positions([row]).get(item.id)


def loads(teams: Iterable[Team]) -> dict[str, Load]:
    """Return the numbers of the teams' ClusterQueues as last observed, summed over all clusters, by the team's slug;
    zeros if not observed yet. One query.
    """
    by_queue = {queue_names.cluster_queue(team.slug): team.slug for team in teams}
    cluster_queues = MirrorObject.objects.filter(kind="ClusterQueue", name__in=by_queue)
    found: Counter[tuple[str, str]] = Counter()
    for row in cluster_queues:
        facts, team = cluster_queue_facts(row), by_queue[row.name]
        found[team, "pending"] += facts.get("pending", 0)
        found[team, "reserving"] += facts.get("reserving", 0)
        found[team, "admitted"] += facts.get("admitted", 0)
    return {slug: Load(*(found[slug, name] for name in Load._fields)) for slug in by_queue.values()}


def _kueue_positions(cluster: str, team: str) -> pending_workloads.Pending | None:
    """Return Kueue's position of each workload, or None if Kueue does not answer."""
    try:
        return pending_workloads.pending(connect(cluster), queue_names.cluster_queue(team))
    except (ClusterUnavailable, ClusterRefused):
        return None


def _entries_ahead(queued: Sequence[QueueItem], start: int, size: int) -> list[EntriesAhead]:
    """Return the entries ahead of each entry of a page, in the same cluster; ``queued`` is sorted by cluster."""
    cluster, entries, requests = "", 0, Counter[str]()
    found = []
    for n, one in enumerate(queued[: start + size]):
        if one.cluster != cluster:
            cluster, entries, requests = one.cluster, 0, Counter()
        if n >= start:
            found.append(EntriesAhead(entries, dict(requests)))
        entries += 1
        requests.update(one.requests)
    return found


def _tree_parts() -> tuple[Columns, Columns, Columns]:
    """Return what to read for ``_others_waiting``: departments with those above them, teams, and ClusterQueues."""
    return (
        Columns(Department.objects.order_by(), ("pk", "parent_id")),
        Columns(Team.objects.order_by(), ("slug", "department_id")),
        Columns(MirrorObject.objects.filter(kind="ClusterQueue"), ("name", "facts__pending")),
    )


def _others_waiting(
    team: Team,
    parents: Mapping[int, int | None],
    teams: Iterable[tuple[str, int]],
    cluster_queues: Iterable[tuple[str, int | None]],
) -> int:
    tree = selectors.tree_of(team.department_id, parents)
    others = {queue_names.cluster_queue(slug) for slug, department in teams if department in tree and slug != team.slug}
    return sum(pending or 0 for name, pending in cluster_queues if name in others)
