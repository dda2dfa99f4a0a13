"""python -m bench --only rate: requests that arrive at a fixed rate, whoever still waits, beside the bare client.

A hold is timed from the moment at which its request was to be sent, so a client that falls behind is counted too. The
bare client runs for half of the time before the portal and for half of it after.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any
from uuid import UUID

from allocations.domain.phases import Phase
from bench import processors
from bench.bare_crowd import BareCrowd
from bench.burst import added
from bench.teams import BenchTeam, bench_teams, live, release, until
from bench.throughput import active_at
from deploy.local.runner import Local

PER_S = 5.0
THREADS = 40


def measure(local: Local, seconds: int, teams: int) -> dict[str, Any]:
    """Return the part ``rate`` of ``bench.json``."""
    number = round(PER_S * seconds)
    with bench_teams(local, teams, max(number, teams)) as crowd:
        first = _bare(crowd, number // 2)
        used = processors.sample(local)
        portal = _portal(crowd, number)
        use = processors.between(used, processors.sample(local))
        release(crowd)
        second = _bare(crowd, number // 2)
    return {
        "per_s": PER_S,
        "seconds": seconds,
        "teams": teams,
        **added(portal, first, second),
        "processors_busy": use.busy,
        "processor_ms_per_hold": use.per(number),
    }


def arrive(number: int, per_s: float, teams: Sequence[BenchTeam], send: Callable[[BenchTeam, float], Any]) -> list[Any]:
    """Call ``send`` with the teams in turn at a fixed rate, each in a thread; return what the calls return.

    ``send`` gets the time at which it was to be called.
    """
    start = time.time() + 0.5

    def at_its_time(task: tuple[int, BenchTeam]) -> Any:
        n, team = task
        at = start + n / per_s
        time.sleep(max(0.0, at - time.time()))
        return send(team, at)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(at_its_time, enumerate(islice(cycle(teams), number))))


def _bare(crowd: Sequence[BenchTeam], number: int) -> list[float]:
    with BareCrowd(crowd[0].bare.api) as bare:
        bare.settle(crowd)

        def send(team: BenchTeam, at: float) -> float:
            return bare.hold(team, bare.request(team)) - at

        seconds: list[float] = arrive(number, PER_S, crowd, send)
        bare.release(crowd)
    return seconds


def _portal(crowd: Sequence[BenchTeam], number: int) -> list[float]:
    def send(team: BenchTeam, at: float) -> tuple[UUID, float]:
        return team.web.request(team.body), at

    sent: dict[UUID, float] = dict(arrive(number, PER_S, crowd, send))
    until(lambda: live(crowd).filter(phase=Phase.ACTIVE).count() == len(sent), "everything is held")
    held = active_at(list(sent))
    return [held[id_].timestamp() - at for id_, at in sent.items()]
