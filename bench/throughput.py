"""python -m bench --only throughput: many requests at once by many teams, beside the bare client.

Both sides have one client for each team. The bare client runs before and after the portal: the ratio of its two rates
tells how noisy the machine is.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from statistics import median
from typing import Any, cast
from uuid import UUID

from allocations.domain.observed_facts import WorkloadFacts
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject, Transition
from bench import processors
from bench.bare_crowd import BareCrowd
from bench.burst import GUARD, OWN_OBJECTS, STATUS_STEPS, Burst, compared, fairness, writes
from bench.teams import BenchTeam, bench_teams, live, release, until
from deploy.local.runner import Local
from portal.core import clock
from portal.core.models import WorkItem
from tests.support.apiserver import OWN_WRITES, ApiServer

WITHIN_S = 400
EVERY_S = 0.5
STAGES = (
    "from the request to its lease (work queue and worker)",
    "from the lease to its admission (Kueue)",
    "from the admission to active (watcher and worker)",
)


def measure(local: Local, requests: int, teams: int) -> dict[str, Any]:
    """Return the part ``throughput`` of ``bench.json``."""
    each = max(1, requests // teams)
    with bench_teams(local, teams, each * teams) as crowd:
        first = _bare(crowd, each)
        found = _portal(local, crowd, each)
        start = time.perf_counter()
        count = live(crowd).count()
        release(crowd)
        released = count / (time.perf_counter() - start)
        second = _bare(crowd, each)
    return {"teams": teams, **compared(found, first, second), "released_per_s": round(released, 1)}


def _bare(crowd: Sequence[BenchTeam], each: int) -> Burst:
    """Request everything at once by the bare client, hold it, and release it."""
    burst = Burst()
    with BareCrowd(crowd[0].bare.api) as bare:
        bare.settle(crowd)
        start = time.time()

        def of_team(team: BenchTeam) -> tuple[str, list[float]]:
            specs = []
            for _ in range(each):
                specs.append(bare.request(team))
                burst.accepted.append(time.time() - start)
            return team.project.slug, [bare.hold(team, spec) - start for spec in specs]

        with ThreadPoolExecutor(len(crowd)) as threads:
            burst.held = dict(threads.map(of_team, crowd))
        bare.release(crowd)
    return burst


def _portal(local: Local, crowd: Sequence[BenchTeam], each: int) -> dict[str, Any]:
    """Request everything at once by the portal's REST API, and wait until it is held."""
    server = ApiServer(local.home)
    with server.counting_own():
        own, counts, used = server.own(OWN_WRITES), server.counts(), processors.sample(local)
        start, backlog = clock.now(), []
        burst = Burst()

        def of_team(team: BenchTeam) -> list[UUID]:
            ids = []
            for _ in range(each):
                ids.append(team.web.request(team.body))
                burst.accepted.append((clock.now() - start).total_seconds())
            return ids

        def are_held() -> bool:
            backlog.append(WorkItem.objects.filter(due_at__lte=clock.now()).count())
            return live(crowd).filter(phase=Phase.ACTIVE).count() == each * len(crowd)

        with ThreadPoolExecutor(len(crowd)) as threads:
            accepted = [threads.submit(of_team, team) for team in crowd]
            until(are_held, "everything is held", WITHIN_S, EVERY_S)
            ids = [id_ for future in accepted for id_ in future.result()]
        use = processors.between(used, processors.sample(local))
        _until_written(server, own, len(ids))
        applied = _applied(server, counts)
        own = server.own(OWN_WRITES) - own
    held = active_at(ids)
    for slug, id_ in Allocation.objects.filter(pk__in=ids).values_list("project__slug", "pk"):
        burst.held.setdefault(slug, []).append((held[id_] - start).total_seconds())
    stages = _stages(ids, held)
    return {
        **burst.document(),
        "fairness": fairness(burst.held, each),
        "writes": writes(len(ids), own, applied, len(crowd)),
        "processors_busy": use.busy,
        "processor_ms_per_hold": use.per(len(ids)),
        "most_targets_due": max(backlog),
        "stages_s": stages,
        "bound_by": processors.bound(use, stages),
    }


def active_at(ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Return when each allocation was recorded as active."""
    found = Transition.objects.filter(allocation__in=ids, type="phase", to_phase=Phase.ACTIVE).order_by("-recorded_at")
    return dict(found.values_list("allocation", "recorded_at"))


def _stages(ids: Sequence[UUID], held: Mapping[UUID, datetime]) -> dict[str, float]:
    """Return the median seconds of each stage. The API server's times are whole seconds."""
    columns = ("project__namespace", "name", "pk", "created_at")
    found = Allocation.objects.filter(pk__in=ids).values_list(*columns)
    rows = {(namespace, name): (id_, at) for namespace, name, id_, at in found}
    leases = MirrorObject.objects.filter(kind="Workload", namespace__in={namespace for namespace, _ in rows})
    series: tuple[list[float], ...] = ([], [], [])
    for namespace, name, found_facts in leases.values_list("namespace", "allocation", "facts"):
        id_, requested = rows[namespace, name]
        facts = cast(WorkloadFacts, found_facts)
        made = datetime.fromisoformat(facts["created_at"])
        admitted = datetime.fromisoformat(facts["conditions"]["Admitted"]["at"])
        times = (requested, made, admitted, held[id_])
        for number in range(3):
            series[number].append(max(0.0, (times[number + 1] - times[number]).total_seconds()))
    return {name: round(median(each), 2) for name, each in zip(STAGES, series, strict=True) if each}


def _applied(server: ApiServer, before: Counter[Any]) -> dict[str, int]:
    """Return the applied objects since then by resource; only the portal applies these."""
    found: Counter[str] = Counter()
    for request, number in (server.counts() - before).items():
        if request.verb == "APPLY" and request.resource in (*OWN_OBJECTS, GUARD):
            found[request.resource] += number
    return dict(found)


def _until_written(server: ApiServer, before: int, requests: int) -> None:
    """Wait until the last status step is written, which follows after the phase; and a little for any further write."""
    least = (len(OWN_OBJECTS) + STATUS_STEPS) * requests
    until(lambda: server.own(OWN_WRITES) - before >= least, "the last status step is written", within_s=30)
    until(lambda: not WorkItem.objects.filter(due_at__lte=clock.now()).exists(), "nothing is due")
