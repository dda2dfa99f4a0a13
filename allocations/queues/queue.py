"""A team's queue of allocations and Jobs, with positions.

Kueue decides the order. For one queue Kueue is asked, in one call; lists over many teams, and answers while Kueue is
unavailable, use the portal's order: by priority, then by age. Of long queues one page is read in full.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from allocations.cluster import pending_workloads
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.models import Allocation, MirrorObject
from allocations.queues import entries as queue_entries
from allocations.queues.entries import Entry, QueueItem
from allocations.queues.jobs import Job
from portal.tenants.models import Team
from quotas.limits import names as queue_names
from quotas.limits import selectors

PAGE_SIZE = 50


class QueuePosition(NamedTuple):
    """``position`` counts from 1."""

    position: int
    of: int


class Ahead(NamedTuple):
    """What waits before another in the same queue: how many, and what they ask for together."""

    entries: int
    requests: Mapping[str, int]


@dataclass(frozen=True)
class Queue:
    """A page of one team's queue: ``pending`` of all ``waiting``, ``admitted`` of all ``holding``.

    ``by`` says whose order it is: kueue, or portal while Kueue does not answer.

    ``others_waiting``: how many wait in the queues of other teams in the same tree of departments, which may want what
    is lent.
    """

    pending: list[tuple[QueuePosition, Entry, Ahead]]
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
    items = queue_entries.of_teams([team.pk])
    queued = [one for one in items if one.is_queued]
    holding = [one for one in items if not one.is_queued]
    told = {cluster: _told(cluster, team.slug) for cluster in sorted({one.cluster for one in queued})}
    queued.sort(key=lambda one: (one.cluster, (told[one.cluster] or {}).get(one.workload, len(items))))
    waiting = Counter(one.cluster for one in queued)
    start = pending_from - 1
    pending = list(zip(queued[start : start + size], _aheads(queued, start, size), strict=True))
    admitted = holding[holding_from - 1 : holding_from - 1 + size]
    entries = queue_entries.in_full([*(one for one, _ in pending), *admitted])
    return Queue(
        pending=[
            (QueuePosition(ahead.entries + 1, waiting[one.cluster]), entries[one.id], ahead)
            for one, ahead in pending
            if one.id in entries
        ],
        admitted=[entries[one.id] for one in admitted if one.id in entries],
        waiting=len(queued),
        holding=len(holding),
        by="portal" if None in told.values() else "kueue",
        others_waiting=_others_waiting(team),
    )


def positions(rows: Iterable[Allocation | Job]) -> dict[UUID, QueuePosition]:
    """Return the position of each queued one in its team's queue of its cluster, in the portal's order and a fixed
    number of queries.
    """
    queued = [item for row in rows if (item := queue_entries.item(row)).is_queued]
    if not queued:
        return {}
    asked = {item.id for item in queued}
    counted: Counter[tuple[int, str]] = Counter()
    found: dict[UUID, tuple[tuple[int, str], int]] = {}
    for one in queue_entries.of_teams({item.team for item in queued}):
        if one.is_queued:
            line = one.team, one.cluster
            counted[line] += 1
            if one.id in asked:
                found[one.id] = (line, counted[line])
    return {id_: QueuePosition(position, counted[line]) for id_, (line, position) in found.items()}


def position(row: Allocation | Job) -> QueuePosition | None:
    """The place of one as Kueue has it now, else as the portal orders; None when it is not queued."""
    item = queue_entries.item(row)
    if not item.is_queued:
        return None
    told = _told(item.cluster, row.project.team.slug) or {}
    if position := told.get(item.workload):
        return QueuePosition(position, len(told))
    return positions([row]).get(item.id)


def loads(teams: Iterable[Team]) -> dict[str, Load]:
    """Return the numbers of the teams' ClusterQueues as last observed, summed over all clusters, by the team's slug;
    zeros if not observed yet. One query.
    """
    by_queue = {queue_names.cluster_queue(team.slug): team.slug for team in teams}
    seen = MirrorObject.objects.filter(kind="ClusterQueue", name__in=by_queue)
    found: Counter[tuple[str, str]] = Counter()
    for row in seen:
        found.update({(by_queue[row.name], name): row.facts.get(name) or 0 for name in Load._fields})
    return {slug: Load(*(found[slug, name] for name in Load._fields)) for slug in by_queue.values()}


def _told(cluster: str, team: str) -> pending_workloads.Pending | None:
    """What Kueue says; None when it does not answer."""
    try:
        return pending_workloads.pending(connect(cluster), queue_names.cluster_queue(team))
    except (ClusterUnavailable, ClusterRefused):
        return None


def _aheads(queued: Sequence[QueueItem], start: int, size: int) -> list[Ahead]:
    """Return what waits in the same cluster before each entry of a page, in one pass; ``queued`` is sorted
    by cluster.
    """
    cluster, entries, requests = "", 0, Counter[str]()
    found = []
    for n, one in enumerate(queued[: start + size]):
        if one.cluster != cluster:
            cluster, entries, requests = one.cluster, 0, Counter()
        if n >= start:
            found.append(Ahead(entries, dict(requests)))
        entries += 1
        requests.update(one.requests)
    return found


def _others_waiting(team: Team) -> int:
    others = Team.objects.filter(department__in=selectors.tree_of(team.department_id)).exclude(pk=team.pk)
    queues = [queue_names.cluster_queue(slug) for slug in others.values_list("slug", flat=True)]
    rows = MirrorObject.objects.filter(kind="ClusterQueue", name__in=queues).values_list("facts__pending", flat=True)
    return sum(pending or 0 for pending in rows)
