"""python -m bench --only observed: the watcher's memory, lag and start by the number of objects that it observes.

Objects are ResourceClaims without a holder, as in ``bench.watching``. What an event costs is processor time of the
watcher and of PostgreSQL, less what both take when nothing happens. The namespace is deleted at the end, and Kubernetes
empties it afterwards, so this is the last part on a cluster.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject, WatchState
from bench import fleet_estimate, processors, watching
from bench.bare import Api
from bench.teams import until
from bench.watching import KIND, NAMESPACE, claim, lag, resident
from deploy.local.runner import Local
from portal.core import clock

SHARES = (0.0, 0.2, 0.5, 1.0)
"""The shares of the objects with which it is measured."""
THREADS = 8
CHANGES, EVENTS = 100, 2000
IDLE_S, SETTLE_S = 10.0, 3.0
WITHIN_S = 300
FIELDS = {"fieldManager": "bench", "force": "true"}
PODS = "/api/v1/namespaces/{}/pods"


def measure(local: Local, objects: int) -> dict[str, Any]:
    """Return the part ``observed`` of ``bench.json``: seconds, bytes, and processor milliseconds an event."""
    api = Api(local.home, as_admin=True)
    watching.create_namespace(api)
    _started(local, lambda: None)  # the first start finds caches of files cold
    idle = _idle(local)
    points: list[dict[str, Any]] = []
    costs: dict[str, fleet_estimate.EventCost] = {}
    made = 0
    try:
        for share in SHARES:
            more = round(objects * share) - made
            if more:
                costs["new"] = _cost(local, idle, more, lambda n, first=made: _create(api, first + n))  # type: ignore[misc]
                made += more
            points.append({"objects": made, **_point(local, api)})
        events = max(1, min(EVENTS, made))
        costs |= {name: _cost(local, idle, events, change(api)) for name, change in CHANGES_BY_NAME.items()}
    finally:
        api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    documents = {name: cost.document() for name, cost in costs.items()}
    return {"points": points, "cost_ms": documents, "fleet": fleet_estimate.document(costs, points)}


def _point(local: Local, api: Api) -> dict[str, Any]:
    """Return the figures with the objects that there are now."""
    behind, memory = lag(api, CHANGES), resident(local.pids()["watcher"])
    restart = _started(local, lambda: None)
    peak = resident(local.pids()["watcher"], "VmHWM")
    cold = _started(local, lambda: MirrorObject.objects.filter(kind=KIND, namespace=NAMESPACE).delete())
    return {
        "lag_p50_s": behind["p50_s"],
        "lag_p95_s": behind["p95_s"],
        "memory_bytes": memory,
        "peak_bytes": peak,
        "restart_s": round(restart, 2),
        "cold_start_s": round(cold, 2),
    }


def _started(local: Local, prepare: Callable[[], object]) -> float:
    """Stop the watcher, prepare, and return the seconds from its start until it has listed every kind."""
    local.hold("watcher")
    prepare()
    start, at = time.perf_counter(), clock.now()
    local.start("watcher")
    until(lambda: WatchState.objects.filter(synced_at__gt=at).count() == len(KINDS), "all kinds are listed", WITHIN_S)
    seconds = time.perf_counter() - start
    local.wait_ready("watcher")
    return seconds


def _create(api: Api, number: int) -> None:
    api.call("POST", KINDS[KIND].path(NAMESPACE), claim(f"many-{number}"))


def _changed(api: Api) -> Callable[[int], object]:
    """Return a change that the portal reads: another purpose label of the allocation."""

    def change(number: int) -> None:
        name = f"many-{number}"
        body = claim(name)
        labels = {key: f"{value}-other" for key, value in body["metadata"]["labels"].items()}
        patch = {"apiVersion": body["apiVersion"], "kind": KIND, "metadata": {"name": name, "labels": labels}}
        api.call("PATCH", KINDS[KIND].path(NAMESPACE, name), patch, **FIELDS)

    return change


def _unchanged(api: Api) -> Callable[[int], object]:
    """Return a change of which the portal reads nothing: an annotation."""
    noted = {"annotations": {"example.com/bench": "noted"}}

    def change(number: int) -> None:
        name = f"many-{number}"
        patch = {"apiVersion": KINDS[KIND].api_version, "kind": KIND, "metadata": {"name": name, **noted}}
        api.call("PATCH", KINDS[KIND].path(NAMESPACE, name), patch, **FIELDS)

    return change


def _unchanged_node(api: Api) -> Callable[[int], object]:
    """Return the same of a node."""
    nodes = [node["metadata"]["name"] for node in api.call("GET", KINDS["Node"].path())["items"]]

    def change(number: int) -> None:
        name = nodes[number % len(nodes)]
        noted = {"annotations": {"example.com/bench": str(number)}}
        patch = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **noted}}
        api.call("PATCH", KINDS["Node"].path("", name), patch, **FIELDS)

    return change


def _left_out(api: Api) -> Callable[[int], object]:
    """Return the creation of a pod without GPUs, which no scheduler takes."""
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}

    def change(number: int) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"other-{number}"}}
        spec = {"schedulerName": "none", "containers": [container]}
        api.call("POST", PODS.format(NAMESPACE), {**body, "spec": spec})

    return change


CHANGES_BY_NAME: dict[str, Callable[[Api], Callable[[int], object]]] = {
    "changed": _changed,
    "unchanged": _unchanged,
    "unchanged node": _unchanged_node,
    "left out": _left_out,
}


def _cost(
    local: Local, idle: Sequence[float], number: int, change: Callable[[int], object]
) -> fleet_estimate.EventCost:
    """Return what so many events cost, each caused by one call."""
    before = processors.sample(local)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(change, range(number)))
    _until_recorded(Api(local.home, as_admin=True))
    time.sleep(SETTLE_S)
    after = processors.sample(local)
    use, seconds = processors.between(before, after), after.at - before.at
    watcher, database = (
        max(0.0, use.of(name) - rate * seconds) for name, rate in zip(("watcher", "postgres"), idle, strict=True)
    )
    return fleet_estimate.EventCost(1000 * watcher / number, 1000 * database / number)


def _until_recorded(api: Api) -> None:
    """Wait until an object that is created now is recorded: what was before it in its watch is recorded then."""
    name = f"last-{uuid4().hex[:8]}"
    api.call("POST", KINDS[KIND].path(NAMESPACE), claim(name))
    until(MirrorObject.objects.filter(kind=KIND, namespace=NAMESPACE, name=name).exists, "the events are recorded")


def _idle(local: Local) -> Sequence[float]:
    """Return the processor seconds a second of watcher and PostgreSQL when nothing happens."""
    before = processors.sample(local)
    time.sleep(IDLE_S)
    after = processors.sample(local)
    use = processors.between(before, after)
    return [use.of(name) / (after.at - before.at) for name in ("watcher", "postgres")]
