"""Records what should be charged, from the API server once a second: an independent measure for the ledger.

Each kind of holder has its own rule: slices by DRA are charged while their devices are allocated, after all their
holders ran; slices by device plugin while the hold quota's status shows them; a queued Job for the larger of its Kueue
reservation and the requests of its bound pods. A sample is valid until the next one.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from urllib3.exceptions import HTTPError

from quotas.metering.models import UsageInterval
from tests.support.cluster import ledger, usage
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.usage import Holder, Usage
from tests.support.cluster.waiting import eventually

EVERY_S = 1.0
MAX_GAP_S = 10.0
"""The maximum distance of two samples: that much of each interval is not measured."""


@dataclass(frozen=True)
class Sample:
    """``used`` by pods and ``due`` to be charged, by holder, at a moment between request and answer."""

    requested_at: float
    answered_at: float
    used: dict[Holder, int]
    due: dict[Holder, int]


class Recorder(threading.Thread):
    def __init__(self, admin: ApiClient, namespaces: Collection[str]) -> None:
        super().__init__(name="recorder", daemon=True)
        self.samples: list[Sample] = []
        self._admin, self._namespaces = admin, list(namespaces)
        self._was_held: set[Holder] = set()
        self._is_over = threading.Event()

    def run(self) -> None:
        next_at = time.time()
        while not self._is_over.wait(max(0.0, next_at - time.time())):
            next_at = max(next_at + EVERY_S, time.time())
            try:
                snapshot = usage.take_snapshot(self._admin, self._namespaces, time.time)
            except (HTTPError, AssertionError):
                continue
            usages = usage.read(snapshot)
            due = {holder: self._charge_due(holder, one) for holder, one in usages.items()}
            used = {holder: one.used.total() for holder, one in usages.items()}
            self.samples.append(
                Sample(snapshot.requested_at, snapshot.answered_at, _without_zero(used), _without_zero(due))
            )

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def sampled_again(self, times: int) -> None:
        """Wait until this many more samples were taken."""
        before = len(self.samples)
        eventually(lambda: len(self.samples) >= before + times, within_s=30.0 + times)

    def _charge_due(self, holder: Holder, holder_usage: Usage) -> int:
        if holder.kind == "job":
            return (holder_usage.reserved | holder_usage.used).total()
        if holder_usage.held:
            self._was_held.add(holder)
        elif not holder_usage.occupied:
            self._was_held.discard(holder)
        is_allocated = bool(holder_usage.counted) and holder in self._was_held
        # Of slices by device plugin pods may have more than the quota, for as long as that is not found out.
        return max(holder_usage.occupied, holder_usage.used.total()) if holder_usage.held or is_allocated else 0


def _without_zero(amounts: dict[Holder, int]) -> dict[Holder, int]:
    return {holder: amount for holder, amount in amounts.items() if amount}


@dataclass
class Comparison:
    """GPU-seconds of the recorder and of the ledger, and their allowed difference."""

    recorded: float = 0.0
    charged: float = 0.0
    tolerance: float = 0.0
    intervals: int = 0

    @property
    def differs(self) -> bool:
        return abs(self.recorded - self.charged) > self.tolerance

    def add(self, other: "Comparison") -> None:
        self.recorded += other.recorded
        self.charged += other.charged
        self.tolerance += other.tolerance
        self.intervals += other.intervals


def longest_gap(samples: list[Sample]) -> float:
    """Return the most seconds from the request of a sample until the next one was answered."""
    return max(second.answered_at - first.requested_at for first, second in pairwise(samples))


def compare(samples: list[Sample], namespaces: Collection[str]) -> dict[Holder, Comparison]:
    """Return GPU-seconds of samples and ledger over the same time, by holder; each interval may differ by one sample.

    A slice's part of a GPU is not visible from outside: it is taken from the holder's own intervals.
    """
    rows = ledger.intervals(namespaces)
    begin, end = samples[0].requested_at, samples[-1].requested_at
    max_gap = longest_gap(samples)
    comparisons: dict[Holder, Comparison] = defaultdict(Comparison)
    shares = {holder: sum(row.gpus for row in part) / sum(row.count for row in part) for holder, part in rows.items()}
    for before, after in pairwise(samples):
        for holder, slices in before.due.items():
            gpus = float(slices * shares.get(holder, 1))
            comparisons[holder].recorded += gpus * (after.requested_at - before.requested_at)
    for holder, intervals in rows.items():
        for row in intervals:
            gpus = float(row.count * shares[holder])
            charged = gpus * _seconds_within(row, begin, end)
            comparisons[holder].add(Comparison(charged=charged, tolerance=gpus * max_gap, intervals=1))
    return dict(comparisons)


def differences(samples: list[Sample], namespaces: Collection[str]) -> list[str]:
    """Return a sentence for each holder whose GPU-seconds differ by more than one sample of each interval."""
    return [
        f"{holder.kind} {holder.name} is charged {found.charged:.1f} GPU-seconds in {found.intervals} intervals, and "
        f"{found.recorded:.1f} were seen, give or take {found.tolerance:.1f}"
        for holder, found in compare(samples, namespaces).items()
        if found.differs
    ]


def _seconds_within(row: UsageInterval, begin: float, end: float) -> float:
    first = max(begin, row.start.timestamp())
    last = min(end, row.end.timestamp() if row.end else end)
    return max(0.0, last - first)


def uncharged(samples: list[Sample], namespaces: Collection[str]) -> list[str]:
    """Return a sentence for each holder whose pods used uncharged GPUs for longer than one sample, or charged
    twice.
    """
    rows = ledger.intervals(namespaces)
    missing: dict[Holder, list[str]] = defaultdict(list)
    for before, now, after in zip(samples, samples[1:], samples[2:], strict=False):
        moments = (before.requested_at, now.requested_at, now.answered_at, after.answered_at)
        for holder, amount in now.used.items():
            charged = max(ledger.count_at(rows.get(holder, ()), moment) for moment in moments)
            if amount > charged:
                missing[holder].append(
                    f"{amount} instead of {charged} at {datetime.fromtimestamp(now.requested_at, UTC):%T}"
                )
    found = [
        f"{holder.kind} {holder.name} has GPUs that are not charged: {', '.join(seconds)}"
        for holder, seconds in missing.items()
    ]
    return found + [words for intervals in rows.values() for words in ledger.overlaps(intervals)]
