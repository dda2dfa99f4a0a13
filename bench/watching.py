"""The watcher's delay after a bare watch client until a change is in the database, and its memory.

Both are of the running portal's own watcher, with ResourceClaims without a holder in a namespace that is no project: a
kind that it mirrors whoever created it. They have the name of an allocation without a row, so no other process reacts.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from urllib3.exceptions import HTTPError

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from bench.bare import Api, events
from bench.statistics import percentile

THREADS = 8
WITHIN_S = 120
LOOK_EVERY_S = 0.0005
KIND = "ResourceClaim"
NAMESPACE = "bench-watched"


def create_namespace(api: Api) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.call("PATCH", f"/api/v1/namespaces/{NAMESPACE}", namespace, fieldManager="bench")


def lag(api: Api, changes: int) -> dict[str, float]:
    """Return the seconds from a bare client's receipt of a new object until its row is committed."""
    path = KINDS[KIND].path(NAMESPACE)
    found: list[float] = []
    with _received(api, path) as received:
        for number in range(changes):
            name = f"lag-{number}"
            api.call("POST", path, claim(name))
            found.append(_recorded_at(name) - _at(received, name))
    _remove(api, path, [f"lag-{number}" for number in range(changes)])
    return {
        "changes": changes,
        "p50_s": round(median(found), 4),
        "p95_s": round(percentile(found, 0.95), 4),
        "worst_s": round(max(found), 4),
    }


def claim(name: str) -> dict[str, Any]:
    """Return a claim in the portal's form, of a class without a driver, for an allocation that does not exist."""
    request = {"name": "slice-0", "exactly": {"deviceClassName": "none.example.com", "count": 1}}
    labels = {names.ALLOCATION: f"bench-{name}"}
    return {
        "apiVersion": KINDS[KIND].api_version,
        "kind": KIND,
        "metadata": {"name": name, "labels": labels},
        "spec": {"devices": {"requests": [request]}},
    }


@contextmanager
def _received(api: Api, path: str) -> Iterator[dict[str, float]]:
    """Return the time at which a bare watch received each object, by name."""
    times: dict[str, float] = {}
    watch = api.watch(path, api.call("GET", path, limit="1")["metadata"]["resourceVersion"], WITHIN_S)

    def follow() -> None:
        with suppress(HTTPError):  # how a connection that is shut down from here ends
            for event in events(watch):
                times.setdefault(event["object"]["metadata"]["name"], time.perf_counter())

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield times
    watch.shutdown()
    thread.join()


def _recorded_at(name: str) -> float:
    """Return the time at which the row was first visible to another connection than the watcher's."""
    _until(lambda: MirrorObject.objects.filter(kind=KIND, namespace=NAMESPACE, name=name).exists(), LOOK_EVERY_S)
    return time.perf_counter()


def _at(received: Mapping[str, float], name: str) -> float:
    _until(lambda: name in received, LOOK_EVERY_S)
    return received[name]


def resident(pid: int, which: str = "VmRSS") -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{which}:"))


def _remove(api: Api, path: str, names: list[str]) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda name: api.call("DELETE", f"{path}/{name}"), names))


def _until(holds: Callable[[], bool], every_s: float) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WITHIN_S} s")
        time.sleep(every_s)
