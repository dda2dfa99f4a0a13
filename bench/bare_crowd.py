"""The bare client with many allocations at once: one thread a team, and one watch a kind for all of them."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import lease
from allocations.domain.objects import ResolvedSpec, Snapshot
from bench.bare import Api, events, follows, is_admitted
from bench.teams import BenchTeam, until

WITHIN_S = 300
AWAITED: dict[str, Callable[[dict[str, Any]], bool]] = {"Workload": is_admitted, "ResourceQuota": follows}


class Watched:
    """The objects of one kind that are as awaited, from a list and a watch of all namespaces.

    A watch that ends, or that is silent for longer than a read may take, begins again with a list.
    """

    def __init__(self, api: Api, kind: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        self._api, self._path, self._holds = api, KINDS[kind].path(), holds
        self._found: dict[tuple[str, str], threading.Event] = {}
        self._is_closed = False
        self._watch = self._list_and_watch()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def wait(self, namespace: str, name: str) -> None:
        if not self._event(namespace, name).wait(WITHIN_S):
            raise TimeoutError(f"{self._path}: {namespace}/{name} is not as awaited after {WITHIN_S} s")

    def close(self) -> None:
        self._is_closed = True
        self._watch.shutdown()
        self._thread.join()

    def _event(self, namespace: str, name: str) -> threading.Event:
        return self._found.setdefault((namespace, name), threading.Event())

    def _list_and_watch(self) -> BaseHTTPResponse:
        found = self._api.call("GET", self._path)
        for raw in found["items"]:
            self._look_at(raw)
        return self._api.watch(self._path, found["metadata"]["resourceVersion"], WITHIN_S)

    def _follow(self) -> None:
        while not self._is_closed:
            with suppress(HTTPError):  # how a silent connection ends, or one that is shut down from here
                for event in events(self._watch):
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "DELETED":
                        self._look_at(event["object"])
            if not self._is_closed:
                self._watch = self._list_and_watch()

    def _look_at(self, raw: dict[str, Any]) -> None:
        if self._holds(raw):
            self._event(raw["metadata"]["namespace"], raw["metadata"]["name"]).set()


@dataclass
class BareCrowd:
    """The bare client of several teams. Used as a context: its watches are open until the end."""

    api: Api
    _watched: dict[str, Watched] = field(default_factory=dict)
    _held: dict[str, list[ResolvedSpec]] = field(default_factory=dict)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._watched = {kind: Watched(self.api, kind, holds) for kind, holds in AWAITED.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for watched in self._watched.values():
            watched.close()

    def request(self, team: BenchTeam) -> ResolvedSpec:
        """Create the lease of another allocation."""
        spec = team.next_spec()
        team.bare.apply(lease.build(spec))
        return spec

    def hold(self, team: BenchTeam, spec: ResolvedSpec) -> float:
        """Write what follows once the lease is admitted; return the time at which the slices were held."""
        self._watched["Workload"].wait(spec.namespace, names.lease(spec.name))
        for manifest in (team.bare.quota(spec, held=True), *registry.backend_of(spec).objects(spec, Snapshot())):
            team.bare.apply(manifest)
        self._watched["ResourceQuota"].wait(spec.namespace, names.hold_slot(spec.number))
        with self._locks.setdefault(spec.namespace, threading.Lock()):
            held = self._held.setdefault(spec.namespace, [])
            held.append(spec)
            team.bare.guard(*held)
        at = time.time()
        team.bare.pods_ready(spec)
        return at

    def release(self, teams: Sequence[BenchTeam]) -> None:
        """Delete everything that was held, and wait until the cluster is done with it."""
        self._delete(teams)
        self.settle(teams)

    def settle(self, teams: Sequence[BenchTeam]) -> None:
        """Hold one allocation of each team in turn, and delete them.

        Kubernetes' quota controller still counts for some seconds after hundreds of deletions; who is measured next
        would wait for it.
        """
        for team in teams:
            self.hold(team, self.request(team))
        self._delete(teams)

    def _delete(self, teams: Sequence[BenchTeam]) -> None:
        with ThreadPoolExecutor(len(teams)) as threads:
            list(threads.map(self._release, teams))
        self._held.clear()

    def _release(self, team: BenchTeam) -> None:
        namespace = team.template.namespace
        team.bare.guard()
        for spec in self._held.get(namespace, ()):
            team.bare.apply(team.bare.quota(spec, held=False))
            path = KINDS["Workload"].path(namespace, names.lease(spec.name))
            self.api.call("DELETE", path)
        leases = KINDS["Workload"].path(namespace)
        until(lambda: not self.api.call("GET", leases)["items"], f"the leases in {namespace} are gone")
