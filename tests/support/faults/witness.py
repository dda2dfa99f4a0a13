"""Records from etcd what was held and when: the reference for the ledger.

It follows every write of pods, claims and quotas in their order, also while the API server is away, and shares no code
with the portal. Only while etcd is away, a start or an end is known as a span of time.
"""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from urllib3.exceptions import HTTPError

from deploy.local.home import Home
from tests.support.faults import stored
from tests.support.faults.etcd import Etcd

AGAIN_S = 0.2
PODS, CLAIMS, QUOTAS = (f"/registry/{kind}/" for kind in ("pods", "resourceclaims", "resourcequotas"))
FIRST, LAST = PODS, QUOTAS.removesuffix("/") + "0"
"""The keys of all three, and of kinds between them."""
HOLDER = "-holder"
Name = tuple[str, str]
"""Namespace and name of an object."""


class Slot(NamedTuple):
    """What is held: a device, or by device plugin an allocation's count (``device`` is empty)."""

    namespace: str
    allocation: str
    device: str


@dataclass
class Hold:
    """Both bounds in seconds since the epoch, each as (earliest, latest); ``ended`` is None while it is held."""

    began: tuple[float, float]
    ended: tuple[float, float] | None = None

    def shortest(self, now: float) -> tuple[float, float]:
        """Return start and end of the time in which it was certainly held."""
        end = self.ended[0] if self.ended else now
        return min(self.began[1], end), end

    def longest(self, now: float) -> tuple[float, float]:
        """Return start and end of the time in which it may have been held."""
        return self.began[0], self.ended[1] if self.ended else now


class Witness(threading.Thread):
    """A hold by DRA begins once a claim is allocated and its holder runs, and ends when it is not allocated any more;
    one by device plugin begins once the status of a quota shows what it lists, and ends when it lists it no longer.
    """

    def __init__(self, home: Home) -> None:
        super().__init__(name="witness", daemon=True)
        self.holds: dict[Slot, list[Hold]] = defaultdict(list)
        self._running: set[Name] = set()
        self._devices: dict[Name, set[Slot]] = {}
        self._listed: dict[Name, set[Slot]] = {}
        self._shown: dict[Name, set[Slot]] = {}
        self._home, self._is_stopped, self._heard_at = home, threading.Event(), time.time()

    def run(self) -> None:
        while not self._is_stopped.is_set():
            try:
                self._follow(Etcd(self._home))
            except (HTTPError, AssertionError, ValueError, KeyError):  # etcd is away: nothing changes until it is back
                self._is_stopped.wait(AGAIN_S)

    def stop(self) -> None:
        self._is_stopped.set()
        self.join()

    def _follow(self, etcd: Etcd) -> None:
        values, revision = etcd.read(FIRST, LAST)
        self.start_over(values, self._heard_at, time.time())
        while not self._is_stopped.is_set():
            for key, written_at, value in etcd.writes(FIRST, LAST, revision):
                revision, self._heard_at = written_at, time.time()
                self.record(key, value, self._heard_at, self._heard_at)
                if self._is_stopped.is_set():
                    return
            self._heard_at = time.time()

    def start_over(self, values: dict[str, bytes], before: float, now: float) -> None:
        """Take these as all objects that there are at some moment between two times, in seconds since the epoch."""
        self._running, self._devices, self._listed, self._shown = set(), {}, {}, {}
        for key, value in values.items():
            self._take(key, value)
        self._compare(before, now)

    def record(self, key: str, value: bytes | None, before: float, now: float) -> None:
        """Take an object as it was written at some moment between two times; None if it was deleted."""
        self._take(key, value)
        self._compare(before, now)

    def _take(self, key: str, value: bytes | None) -> None:
        if not key.startswith((PODS, CLAIMS, QUOTAS)):
            return
        namespace, name = key.split("/")[-2:]
        written = None if value is None else stored.content(value)
        if key.startswith(PODS) and name.endswith(HOLDER):
            claim = (namespace, name.removesuffix(HOLDER))
            self._running -= {claim}
            self._running |= {claim} if written is not None and stored.is_running(written) else set()
        elif key.startswith(CLAIMS):
            devices = stored.devices(written) if written is not None else ()
            self._devices[namespace, name] = {Slot(namespace, name, device) for device in devices}
        elif key.startswith(QUOTAS):
            # By DRA the amounts are empty: its claims show what is held.
            listed = stored.slices(written).items() if written is not None else ()
            counts = {Slot(namespace, allocation, "") for allocation, amounts in listed if amounts}
            self._listed[namespace, name] = counts
            self._shown[namespace, name] = counts if written is not None and stored.is_enforced(written) else set()

    def _compare(self, before: float, now: float) -> None:
        """Let holds begin and end by what is recorded now."""
        occupied = set[Slot]().union(*self._devices.values(), *self._listed.values())
        held = set[Slot]().union(*self._shown.values(), *(self._devices.get(name, ()) for name in self._running))
        for slot in held:
            if not self.holds[slot] or self.holds[slot][-1].ended:
                self.holds[slot].append(Hold(began=(before, now)))
        for slot, holds in list(self.holds.items()):
            if holds and not holds[-1].ended and slot not in occupied:
                holds[-1].ended = (before, now)
