"""The watcher lists and then watches every kind that the portal reads; one writer records what is observed.

A thread per kind reads raw JSON from the API server and puts observations into one queue. The main thread reads them in
batches and records each batch in one transaction, in the order of each kind. An observation and the position of its
watch are one item. Positions are recorded every ``POSITION_S``, and with a deletion; so are the numbers of Kueue's
queues (``Kind.can_wait``), unless another observation comes first.

The watcher does not rely on silence:

- A watch request ends after ``WATCH_S`` and continues from the last revision.
- A read that is silent for longer fails.
- An answer 410 lists the kind again.
- Every ``RELIST_S`` a list checks what the watches reported.
- A database error ends the session of the process, and all kinds are listed again.
- A revision lower than an earlier one does the same: etcd was restored from a backup, and a watch from a revision that
  it has not reached yet would be silent without an error. A watch that broke, or that reported nothing (a proxy may
  hide that it broke), asks for the revision before it continues.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable, StoreRestored
from allocations.cluster.fingerprints import Fingerprints
from allocations.cluster.kinds import KINDS, Kind, Observation, observe
from portal.core import clock

log = structlog.get_logger(__name__)

RELIST_S = 300.0
BATCH = 200
POSITION_S = 2.0
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Listed:
    """A full list of one kind, at ``resource_version``."""

    kind: Kind
    observations: list[Observation]
    resource_version: int
    at: datetime


@dataclass(frozen=True)
class Synced:
    """A watch position: once it is recorded with all items before it, the mirror of the kind is complete up to it."""

    kind: Kind
    resource_version: int
    at: datetime
    observation: Observation | None = None


Item = Listed | Synced | BaseException


class Reflector(threading.Thread):
    """A thread that lists one kind and watches it from that revision on, repeatedly until ``stop`` is set."""

    def __init__(self, client: Client, kind: Kind, out: "queue.Queue[Item]", stop: threading.Event) -> None:
        super().__init__(name=f"watch-{kind.name}", daemon=True)
        self._client, self._kind, self._out, self._stop_event = client, kind, out, stop
        self._fingerprints = Fingerprints()

    def run(self) -> None:
        failures = 0
        while not self._stop_event.is_set():
            try:
                self._list_and_watch()
                failures = 0
            except (ClusterUnavailable, ClusterRefused) as error:
                wait = BACKOFF_S[min(failures, len(BACKOFF_S) - 1)]
                failures += 1
                log.warning("watch.failed", kind=self._kind.name, error=str(error), retry_in_s=wait)
                self._stop_event.wait(wait)
            except BaseException as error:
                self._put(error)
                return

    def _put(self, item: Item) -> None:
        """Put an item into the writer's queue. Waits while the queue is full, until the session ends."""
        while not self._stop_event.is_set():
            try:
                self._out.put(item, timeout=1.0)
            except queue.Full:
                continue
            return

    def _list(self) -> "WatchPosition":
        """List the kind for the writer, and return the position from which to watch.

        A method of its own, so that the list is freed before the watch starts.
        """
        at = clock.now()
        found, revision = self._client.list(self._kind, lambda raw: observe(self._kind, raw, at=at, live=False))
        observations = [each for each in found if each]
        self._fingerprints.start_over(observations)
        self._put(Listed(self._kind, observations, revision, at))
        return WatchPosition(revision, at)

    def _list_and_watch(self) -> None:
        position = self._list()
        relist_at = time.monotonic() + RELIST_S
        failures = 0
        while not self._stop_event.is_set() and time.monotonic() < relist_at:
            try:
                if failures:
                    self._stop_event.wait(BACKOFF_S[failures - 1])
                    position.missed(self._kind, self._client.revision(self._kind))
                self._watch(position)
                failures = 0
            except ClusterUnavailable:
                failures += 1
                if failures > len(BACKOFF_S):
                    raise

    def _watch(self, position: "WatchPosition") -> None:
        """Watch the kind from ``position`` until the server ends the request.

        Events that happened while there was no connection are reported as not live, with the time of the last contact.
        """
        last_contact, first_revision = position.at, position.revision
        for event in self._client.watch(self._kind, position.revision):
            raw, at = event["object"], clock.now()
            if event["type"] == "ERROR":
                raise ClusterRefused(raw.get("code", 410), raw.get("reason", "Expired"), raw.get("message", ""))
            revision = int(raw["metadata"]["resourceVersion"])
            live = revision > position.missed_until
            observation = None
            if event["type"] != "BOOKMARK":
                gone = event["type"] == "DELETED"
                observation = observe(self._kind, raw, at=at if live else last_contact, live=live, gone=gone)
            is_change = observation is not None and self._fingerprints.is_change(observation)
            self._reached(position, revision, at, observation if is_change else None)
            if self._stop_event.is_set():
                return
        # The server ended the request normally: there were no other events until now.
        if position.revision == first_revision:
            position.check(self._kind, self._client.revision(self._kind))
        self._reached(position, position.revision, clock.now())

    def _reached(
        self, position: "WatchPosition", revision: int, at: datetime, observation: Observation | None = None
    ) -> None:
        position.reached(self._kind, revision, at)
        self._put(Synced(self._kind, revision, at, observation))


@dataclass
class WatchPosition:
    """The progress of a watch: its revision, when it was reached, and the revision up to which events were missed."""

    revision: int
    at: datetime
    missed_until: int = 0

    def check(self, kind: Kind, now: int) -> None:
        """Raise StoreRestored if the current revision ``now`` is before this position."""
        if now < self.revision:
            raise StoreRestored(f"{kind.name} was seen at revision {self.revision} and is at {now}")

    def reached(self, kind: Kind, revision: int, at: datetime) -> None:
        """Move the position to ``revision``. Raises StoreRestored if that is before this position."""
        self.check(kind, revision)
        self.revision, self.at = revision, at

    def missed(self, kind: Kind, now: int) -> None:
        """Mark events up to the current revision ``now`` as missed. Raises StoreRestored if it is earlier."""
        self.check(kind, now)
        self.missed_until = now


def run(client: Client, record: Callable[["Batch"], None], stop: threading.Event, beat: Callable[[], None]) -> None:
    """Watch all kinds and record their items until ``stop`` is set. Raises any error of a reader or of ``record``."""
    items: queue.Queue[Item] = queue.Queue(maxsize=10_000)
    ended = threading.Event()
    readers = [Reflector(client, kind, items, ended) for kind in KINDS.values()]
    for reader in readers:
        reader.start()
    kept: Sequence[Item] = ()
    positions_at = time.monotonic()
    try:
        while not stop.is_set():
            beat()
            is_due = time.monotonic() - positions_at >= POSITION_S
            batch, kept = batch_to_record([*kept, *next_batch(items)], with_positions=is_due)
            if batch.items:
                record(batch)
            if is_due:
                positions_at = time.monotonic()
    finally:
        ended.set()


@dataclass(frozen=True)
class Batch:
    """Items to record in one transaction. Without ``with_positions``, only the positions of kinds with a deletion are
    recorded, since an absent object counts as deleted only up to its kind's position.
    """

    items: Sequence[Item]
    with_positions: bool


def batch_to_record(items: Sequence[Item], *, with_positions: bool) -> tuple[Batch, Sequence[Item]]:
    """Return the batch to record now, and the items to keep for the next one."""
    if with_positions:
        return Batch(_without_older_positions(items), with_positions=True), []
    if any(not isinstance(item, Synced) or _is_urgent(item) for item in items):
        synced = {item.kind.name: replace(item, observation=None) for item in items if isinstance(item, Synced)}
        return Batch(items, with_positions=False), list(synced.values())
    return Batch([], with_positions=False), _without_older_positions(items)


def _is_urgent(item: Synced) -> bool:
    return item.observation is not None and not item.kind.can_wait


def _without_older_positions(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items without positions of a kind that a later item of the kind has passed."""
    last = {item.kind.name: item for item in items if isinstance(item, Synced)}
    return [item for item in items if not isinstance(item, Synced) or item.observation or item is last[item.kind.name]]


def next_batch(items: "queue.Queue[Item]") -> list[Item]:
    """Return up to ``BATCH`` queued items, after waiting up to a second for the first. Raises a reader's error."""
    batch: list[Item] = []
    try:
        batch.append(items.get(timeout=1.0))
        while len(batch) < BATCH:
            batch.append(items.get_nowait())
    except queue.Empty:
        pass
    for item in batch:
        if isinstance(item, BaseException):
            raise item
    return batch
