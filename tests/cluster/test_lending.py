"""Three teams lend to each other on the real Kueue, written as a timeline with numbers.

    python -m tests.stack tests/cluster/test_lending.py --lending-example docs/concepts/lending.md

writes the observations into the guide.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

import pytest

from allocations.cluster import names
from allocations.domain.phases import Phase
from allocations.limits.services import text
from allocations.models import Allocation, MirrorObject, Transition
from allocations.queues import lending
from portal.core import clock
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, Project, Role, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Pool
from quotas.costs import windows
from quotas.limits import names as queue_names
from quotas.limits import services as limits
from tests.support.cluster.allocations import ended, held, phase, reason, release_all, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.guide import write_lines
from tests.support.cluster.tenants import wait_for_members
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster
FLAVOR, OFFERING, POOL = "l40s", "l40s/whole", "l40s/gpu"
NOMINAL = {"lidar": 4, "radar": 2, "sonar": 2}
"""Of the eight GPUs of the fleet; lidar does not lend one of its four."""


@dataclass
class Crew:
    """A team with its person and project."""

    team: Team
    user: User
    project: Project


@dataclass
class Timeline:
    crews: dict[str, Crew]
    lines: list[str] = field(default_factory=list)

    def holds(self) -> dict[str, int]:
        return {
            name: sum(
                row.count
                for row in Allocation.objects.filter(project=crew.project, ended_at=None)
                if row.phase in (Phase.ACTIVE, Phase.LEAVING)
            )
            for name, crew in self.crews.items()
        }

    def loans(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Return what each team borrowed and lent."""
        found = {}
        for name, crew in self.crews.items():
            [side] = [s for s in lending.of_team(crew.team) if s.pool == POOL] or [
                lending.TeamBalance(POOL, Fraction(0), Fraction(0))
            ]
            found[name] = (side.borrowed, side.lent)
        return found

    def record(self, event: str) -> None:
        holds, loans = self.holds(), self.loans()
        cells = [f"{holds[name]}{_with(*loans[name])}" for name in self.crews]
        self.lines.append(f"| {event} | {' | '.join(cells)} |\n")


def _with(borrowed: Fraction, lent: Fraction) -> str:
    parts = [f"{text(borrowed)} borrowed" if borrowed else "", f"{text(lent)} lent" if lent else ""]
    return f" ({', '.join(filter(None, parts))})" if any(parts) else ""


@pytest.fixture
def timeline(admin: ApiClient, vision: Team) -> Iterator[Timeline]:
    """Create a department; the demo's teams have no quota of the pool meanwhile."""
    pool = Pool.objects.get(key=POOL)
    theirs = pool.limits.filter(user=None).select_related("team")
    before = {limit.team: limit.nominal for limit in theirs if limit.team}
    for team in before:
        limits.set_limit(SYSTEM, team, pool, 0)
    tail = uuid4().hex[:6]
    department = tenants.create_department(SYSTEM, f"sensing-{tail}", "Sensing")
    crews = {name: _crew(department, name, tail, pool, admin) for name in NOMINAL}
    yield Timeline(crews)
    for crew in crews.values():
        release_all(crew.project)
    for crew in crews.values():
        limits.set_limit(SYSTEM, crew.team, pool, 0)
    for team, nominal in before.items():
        limits.set_limit(SYSTEM, team, pool, nominal)
    eventually(lambda: all(_is_in_guards(team, admin) for team, nominal in before.items() if nominal))


def _is_in_guards(team: Team, admin: ApiClient) -> bool:
    """Return whether the guards of the team's projects know that it has quota of the flavor."""
    spaces = set(Project.objects.filter(team=team, archived_at=None).values_list("namespace", flat=True))
    guards = [one for one in admin.objects("gpuprojects") if one["metadata"]["namespace"] in spaces]
    return not any("hasQuota" in str(one["spec"]["jobFlavors"][FLAVOR]) for one in guards)


def _crew(department: Department, name: str, tail: str, pool: Pool, admin: ApiClient) -> Crew:
    team = tenants.create_team(SYSTEM, department, f"{name}-{tail}", name.capitalize())
    limits.set_limit(SYSTEM, team, pool, NOMINAL[name], borrowing=4, lending=3 if name == "lidar" else None)
    project = tenants.create_project(SYSTEM, team, f"{name}-{tail}", name.capitalize())
    workqueue.enqueue(targets.project(LOCAL, project.slug))
    wait_for_members(admin, project)
    eventually(lambda: _is_ready(team))
    user = tenants.create_user(SYSTEM, f"{name}-{tail}", uuid4().hex)
    members.add(SYSTEM, team, user.username, Role.MEMBER)
    return Crew(team, user, project)


def _is_ready(team: Team) -> bool:
    return MirrorObject.objects.filter(kind="ClusterQueue", name=queue_names.cluster_queue(team.slug)).exists()


def test_three_teams_lend_borrow_and_take_back(
    timeline: Timeline, admin: ApiClient, request: pytest.FixtureRequest
) -> None:
    """Kueue decides which request of sonar it preempts and who borrows first. So sonar withdraws its last request
    before the end: all others fit then, in any order. With it, sonar could get 4, and radar's second 2 would not fit.
    """
    lidar, radar, sonar = timeline.crews.values()
    timeline.record("No slices are held. Nominal quota: lidar 4 (lends at most 3), radar 2, sonar 2")

    first = [held(radar.user, radar.project, OFFERING, 2) for _ in range(2)]
    assert timeline.holds() == {"lidar": 0, "radar": 4, "sonar": 0}
    assert timeline.loans()["radar"] == loan(2, 0)
    timeline.record("Radar requests 2 and 2 more: the second 2 are borrowed")

    own = held(sonar.user, sonar.project, OFFERING, 2)
    borrowed = held(sonar.user, sonar.project, OFFERING, 1)
    assert timeline.loans() == {"lidar": loan(0, 3), "radar": loan(2, 0), "sonar": loan(1, 0)}
    timeline.record("Sonar requests 2 and 1 more: lidar has reached its lending limit")

    waits = request_slices(sonar.user, sonar.project, OFFERING, 1)
    eventually(lambda: phase(waits) == Phase.QUEUED and reason(waits) == "WaitingForQuota")
    timeline.record("Sonar requests 1 more, which waits: lidar does not lend its fourth")

    back = request_slices(lidar.user, lidar.project, OFFERING, 4)
    victims = [*first, own, borrowed]
    notices = Transition.objects.filter(allocation__in=victims, to_phase=Phase.LEAVING).select_related("allocation")
    leaving = eventually(lambda: list(notices.all()))
    assert all(notice.reason == "evicted_preempted" for notice in leaving)
    eventually(lambda: all(is_evicted_for_its_cohort(notice.allocation, admin) for notice in leaving))
    timeline.record("Lidar requests its 4: Kueue reclaims what others borrowed, and their notice period runs")

    wait_for(back, Phase.ACTIVE, within_s=60)
    assert timeline.holds()["lidar"] == 4
    assert timeline.loans()["lidar"] == loan(0, 0)
    assert sum(timeline.holds().values()) <= 8
    timeline.record("The notice period is over: lidar has its 4, and the borrowers queue again")

    ended(sonar.user, waits)
    ended(lidar.user, back)
    eventually(lambda: timeline.holds() == {"lidar": 0, "radar": 4, "sonar": 3}, within_s=60)
    timeline.record("Sonar withdraws its last request and lidar releases its 4: the borrowers are admitted again")

    hours = lending.loans_in(User.objects.get(username="operator"), windows.parse("2d", clock.now()))
    assert {loan.lender for loan in hours if loan.borrower == radar.team.slug} >= {lidar.team.slug}
    if path := request.config.getoption("--lending-example"):
        write_lines(Path(path), "lending", timeline.lines)


def loan(borrowed: int, lent: int) -> tuple[Fraction, Fraction]:
    return Fraction(borrowed), Fraction(lent)


def is_evicted_for_its_cohort(row: Allocation, admin: ApiClient) -> bool:
    """Return whether Kueue reports that the lease is evicted so that the lender can reclaim."""
    lease = admin.get("workload", names.lease(row.name), row.project.namespace)
    return "InCohort" in str(lease["status"]["conditions"])
