"""What stands in the queues of teams, in the portal's order and in few columns: enough for places and sums, since many
may wait where few are shown."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from allocations.cluster import names
from allocations.domain.admission import PRIORITIES
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.queues import jobs
from portal.tenants.models import Project

ADMITTED = (Phase.STARTING, Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING)


class Standing(NamedTuple):
    """One that is queued or has quota. They compare in the portal's order: by priority, then by age."""

    order: tuple[int, datetime, UUID]
    team: int
    cluster: str
    is_job: bool
    is_queued: bool
    workload: tuple[str, str]
    asks: Mapping[str, int]

    @property
    def id(self) -> UUID:
        return self.order[2]


def of_teams(teams: Collection[int]) -> list[Standing]:
    """All that is queued in the teams' queues or has quota of them, in order; a fixed number of queries."""
    return sorted([*_allocations(teams), *_jobs(teams)], key=lambda one: one.order)


def _allocations(teams: Collection[int]) -> list[Standing]:
    rows = Allocation.objects.filter(project__team__in=teams, phase__in=(Phase.QUEUED, *ADMITTED), ended_at=None)
    found = rows.order_by().values_list(
        *("pk", "name", "priority", "created_at", "phase", "count"),
        *("offering__key", "project__team_id", "project__cluster", "project__namespace"),
    )
    return [
        Standing(
            order=(-PRIORITIES[priority], created_at, pk),
            team=team,
            cluster=cluster,
            is_job=False,
            is_queued=phase == Phase.QUEUED,
            workload=(namespace, names.lease(name)),
            asks={offering: count},
        )
        for pk, name, priority, created_at, phase, count, offering, team, cluster, namespace in found
    ]


def _jobs(teams: Collection[int]) -> list[Standing]:
    projects = Project.objects.filter(team__in=teams)
    found = projects.values_list("cluster", "namespace", "team_id")
    team_of = {(cluster, namespace): team for cluster, namespace, team in found}
    return [
        Standing(
            order=(-job.priority, job.created_at, job.uid),
            team=team_of[job.cluster, job.namespace],
            cluster=job.cluster,
            is_job=True,
            is_queued=job.state is jobs.State.QUEUED,
            workload=(job.namespace, job.workload),
            asks=job.asks,
        )
        for job in jobs.unfinished(projects)
    ]
