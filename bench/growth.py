"""python -m bench --only growth: what a hold and a page take by the number of live and of ended allocations.

First with ended allocations only, then with all of these and more and more live ones. At each point the portal and the
bare client hold slices in turn, in the same queue.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, islice
from statistics import median
from typing import Any
from uuid import uuid4

import urllib3

from allocations.domain.phases import Phase
from bench import ended_allocations, processors
from bench.statistics import percentile
from bench.teams import OFFERING, BenchTeam, bench_teams, live, until
from bench.through import quiet
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope, User
from quotas.catalog.models import Offering
from tests.support.statements import StatementLog

TEAMS = 20
ENDED_SHARES, LIVE_SHARES = (0.0, 0.1, 1.0), (0.5, 1.0)
HOLDS, COUNTED_HOLDS, READS = 9, 3, 15
SPARE_NODES = 4
ROUTES = {"GET /allocations?limit=100": "allocations?limit=100", "GET /offerings": "offerings?limit=100"}
WITHIN_S = 400


def measure(local: Local, live_total: int, ended_total: int, rounds: int) -> dict[str, Any]:
    """Return the part ``growth`` of ``bench.json``."""
    holds = min(rounds, HOLDS)
    read, log = _reader(local), StatementLog(local.home)
    by_ended, by_live = [], []
    spare = SPARE_NODES * TEAMS
    with bench_teams(local, TEAMS, live_total + spare) as crowd:
        offering = Offering.objects.select_related("flavor").get(key=OFFERING)
        owners = [(team.project, team.member.pk) for team in crowd]
        ended = 0
        for share in ENDED_SHARES:
            first, ended = ended, round(ended_total * share)
            if ended > first:
                ended_allocations.insert(owners, offering, first, ended, ended_total)
            by_ended.append({"ended": ended, "live": 0, **_point(local, log, crowd[0], read, holds)})
        by_live.append(by_ended[-1])
        for share in LIVE_SHARES:
            _hold_more(crowd, round(live_total * share))
            figures = _point(local, log, crowd[0], read, holds)
            by_live.append({"ended": ended, "live": live(crowd).count(), **figures})
    return {"by_ended": by_ended, "by_live": by_live}


def _point(
    local: Local, log: StatementLog, team: BenchTeam, read: Callable[[str], float], holds: int
) -> dict[str, Any]:
    """Return the figures of holds and reads with the allocations that there are now."""
    portal, bare = [], []
    for n in range(holds + 1):
        ours, theirs = _portal(team), _bare(team)
        if n:  # the first of each side finds caches cold
            portal.append(ours)
            bare.append(theirs)
    return {
        "holds": holds,
        "portal_p50_s": round(median(portal), 4),
        "portal_p95_s": round(percentile(portal, 0.95), 4),
        "bare_p50_s": round(median(bare), 4),
        "bare_p95_s": round(percentile(bare, 0.95), 4),
        "ratio": round(median(portal) / median(bare), 2),
        **_counted(local, log, team),
        "routes_ms": {name: round(median(read(path) for _ in range(READS)), 1) for name, path in ROUTES.items()},
    }


def _counted(local: Local, log: StatementLog, team: BenchTeam) -> dict[str, Any]:
    """Return what a hold takes of SQL statements (median) and of processor time."""
    statements, used = [], processors.sample(local)
    with log.counting():
        for _ in range(COUNTED_HOLDS):
            start = log.position()
            id_, _ = team.web.hold(team.body)
            statements.append(log.by_process(start)["all"])
            team.web.release(id_)
    use = processors.between(used, processors.sample(local))
    return {
        "statements": median(statements),
        "processor_ms_hold_and_release": use.per(COUNTED_HOLDS),
    }


def _portal(team: BenchTeam) -> float:
    id_, seconds = team.web.hold(team.body)
    team.web.release(id_)
    return seconds


def _bare(team: BenchTeam) -> float:
    spec = replace(team.template, name=f"bench-{uuid4().hex[:8]}", id=str(uuid4()), number=0)
    seconds = team.bare.hold(spec)
    team.bare.release(spec)
    return seconds


def _hold_more(crowd: Sequence[BenchTeam], total: int) -> None:
    """Request slices until so many allocations are live, and wait until they are held."""
    missing = total - live(crowd).count()
    teams = list(islice(cycle(crowd), missing))
    with ThreadPoolExecutor(len(crowd)) as threads:
        list(threads.map(lambda team: team.web.request(team.body), teams))
    until(lambda: live(crowd).filter(phase=Phase.ACTIVE).count() == total, "the live ones are held", WITHIN_S, 0.5)
    quiet()


def _reader(local: Local) -> Callable[[str], float]:
    """Return a function that reads a path of the REST API as an operator, and returns the milliseconds it took."""
    operator = User.objects.get(username="operator")
    _, secret = tenants.issue_token(SYSTEM, operator, "bench", [Scope.READ], timedelta(hours=1))
    pool = urllib3.PoolManager(headers={"Authorization": f"Bearer {secret}"}, retries=False, timeout=30)

    def read(path: str) -> float:
        start = time.perf_counter()
        answer = pool.request("GET", f"{local.home.url}/api/v1/{path}")
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.data.decode()[:300]}")
        return (time.perf_counter() - start) * 1000

    return read
