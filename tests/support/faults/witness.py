"""Records from the API server what was held and when: the reference for the ledger.

It polls as the administrator and shares no code with the portal. A reading is valid for some moment between request and
answer, so each start and end is known as a span of time.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError

from deploy.local.home import Home

EVERY_S = 0.4
OURS = {"labelSelector": "gpu-portal.io/managed=true"}
SLICES = "gpu-portal.io/slices-of"
ALLOCATION = "gpu-portal.io/allocation"


class Slot(NamedTuple):
    """What is held: a device, or by device plugin an allocation's count (``device`` is empty)."""

    namespace: str
    allocation: str
    device: str


@dataclass
class Hold:
    """Both bounds in seconds since the epoch, each as (earliest, latest); ``ended`` is None while it is held.

    It is not ``is_certain`` if a reading saw the devices allocated and no holder any more: the holder ran between two
    readings, or never.
    """

    began: tuple[float, float]
    ended: tuple[float, float] | None = None
    is_certain: bool = True

    def seconds(self, now: float) -> tuple[float, float]:
        """Return the minimum and the maximum of its seconds."""
        first, last = self.ended or (now, now)
        return max(0.0, first - self.began[1]) if self.is_certain else 0.0, last - self.began[0]


class Reading(NamedTuple):
    """What one reading shows: what is ``held``; what is ``occupied``, by whichever pod; and whose holder ``waits`` to
    run, or count to be shown.
    """

    held: set[Slot]
    occupied: set[Slot]
    waits: set[Slot]


class Witness(threading.Thread):
    def __init__(self, home: Home) -> None:
        super().__init__(name="witness", daemon=True)
        self.holds: dict[Slot, list[Hold]] = defaultdict(list)
        self.readings: list[tuple[float, float]] = []
        """When each reading was requested and answered."""
        self._appeared: dict[Slot, float] = {}
        self._home, self._is_stopped = home, threading.Event()
        self._began = time.time()
        certs = home.certs
        self._pool = urllib3.PoolManager(
            ca_certs=str(certs / "ca.crt"),
            cert_file=str(certs / "admin.crt"),
            key_file=str(certs / "admin.key"),
            retries=False,
            timeout=5,
        )

    def run(self) -> None:
        while not self._is_stopped.wait(EVERY_S):
            requested_at = time.time()
            try:
                reading = self._read()
            except (HTTPError, ValueError, KeyError):
                continue  # the API server is away: nothing changes until it is back
            before = self.readings[-1][0] if self.readings else self._began
            self.readings.append((requested_at, time.time()))
            self.record(reading, before, self.readings[-1][1])

    def stop(self) -> None:
        self._is_stopped.set()
        self.join()

    def unread(self) -> list[tuple[float, float]]:
        """Return the times between two readings: what began and ended in one of them was not seen."""
        return [(earlier[0], later[1]) for earlier, later in pairwise(self.readings)]

    def record(self, reading: Reading, before: float, now: float) -> None:
        """Take what was read at some moment between ``before`` and ``now``, in seconds since the epoch."""
        self._appeared = {slot: self._appeared.get(slot, before) for slot in reading.occupied}
        for slot in reading.waits:
            if self.holds[slot] and not (self.holds[slot][-1].is_certain or self.holds[slot][-1].ended):
                self.holds[slot].pop()
        for slot in reading.occupied - reading.waits:
            is_held, last = slot in reading.held, self.holds[slot][-1] if self.holds[slot] else None
            if last is None or last.ended:
                # A quota's status that lags behind does not say whose slices it shows already.
                earliest = before if slot.device else self._appeared[slot]
                self.holds[slot].append(Hold(began=(earliest, now), is_certain=is_held))
            elif is_held and not last.is_certain:
                last.began, last.is_certain = (last.began[0], now), True
        for slot, holds in list(self.holds.items()):
            if holds and not holds[-1].ended and slot not in reading.occupied:
                holds[-1].ended = (before, now)

    def _read(self) -> Reading:
        holders = {
            (m["namespace"], m.get("labels", {}).get(ALLOCATION)): pod.get("status", {}).get("phase")
            for pod in self._list("/api/v1/pods")
            if (m := pod["metadata"])["name"].endswith("-holder") and "deletionTimestamp" not in m
        }
        devices = {
            Slot(claim["metadata"]["namespace"], claim["metadata"]["name"], f"{d['pool']}/{d['device']}")
            for claim in self._list("/apis/resource.k8s.io/v1/resourceclaims")
            for d in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        }
        counted, shown = _counts(self._list("/api/v1/resourcequotas"))
        held = {d for d in devices if holders.get((d.namespace, d.allocation)) == "Running"}
        waiting = {d for d in devices - held if (d.namespace, d.allocation) in holders}
        return Reading(held | shown, devices | counted, waiting | (counted - shown))

    def _list(self, path: str) -> Iterable[dict[str, Any]]:
        answer = self._pool.request("GET", f"{self._home.apiserver}{path}", fields=OURS, preload_content=False)
        with closing(answer):  # also when the API server goes away in the middle of it
            return json.loads(answer.read())["items"]


def _counts(quotas: Iterable[dict[str, Any]]) -> tuple[set[Slot], set[Slot]]:
    """Return the allocations that a hold quota lists, and those whose slices its status shows."""
    listed: set[Slot] = set()
    shown: set[Slot] = set()
    for quota in quotas:
        metadata = quota["metadata"]
        entries = json.loads(metadata.get("annotations", {}).get(SLICES, "{}"))
        hard = quota.get("status", {}).get("hard", {})
        for allocation, amounts in entries.items():
            if not amounts:  # by DRA its claims show what is held
                continue
            slot = Slot(metadata["namespace"], allocation, "")
            listed.add(slot)
            sums = {r: sum(e.get(r, 0) for e in entries.values()) for r in amounts}
            if all(int(hard.get(f"requests.{r}", 0)) >= total for r, total in sums.items()):
                shown.add(slot)
    return listed, shown
