"""Outages of processes that were killed, and the bounds in the ledger that they explain."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from allocations.cluster.client import WATCH_S
from deploy.local.errors import LocalError
from deploy.local.runner import Local
from quotas.metering.models import UsageInterval
from tests.support.faults import judge
from tests.support.faults.witness import Hold

READY_WITHIN_S = 180.0
HIDING = frozenset({"watcher", "postgres", "kube-apiserver"})
"""Processes without which no change is recorded."""
UNORDERED_S = 1.0
"""Pods and claims are read by two watches: a shorter hold may end, by what the portal reads, before it begins."""


@dataclass
class Outage:
    """The time in which a process was away, in seconds since the epoch; ``end`` is None while it is."""

    process: str
    start: float
    end: float | None = None


class Outages:
    """Kills processes, and waits in the background until each is ready again."""

    def __init__(self, local: Local) -> None:
        self.all: list[Outage] = []
        self._local, self._threads = local, list[threading.Thread]()

    def kill(self, process: str) -> None:
        outage = Outage(process, time.time())
        self._local.kill(process)
        self.all.append(outage)
        thread = threading.Thread(target=self._wait, args=(outage,), name=f"{process} is away")
        thread.start()
        self._threads.append(thread)

    def wait(self) -> None:
        """Return when every process is ready again."""
        for thread in self._threads:
            thread.join()
        away = [one.process for one in self.all if one.end is None]
        assert not away, f"not ready within {READY_WITHIN_S:g} s: {', '.join(away)}"

    def _wait(self, outage: Outage) -> None:
        """Wait until the process is ready, READY_WITHIN_S after the last kill at most: of what it needs, too."""
        while outage.end is None:
            try:
                self._local.wait_ready(outage.process, READY_WITHIN_S)
                outage.end = time.time()
            except LocalError:
                if time.time() > self.all[-1].start + READY_WITHIN_S:
                    raise

    def hidden(self) -> list[tuple[float, float]]:
        """Return the times in which changes may not have been watched: those of HIDING that ``hidden`` tells."""
        return hidden((one.start, one.end or time.time()) for one in self.all if one.process in HIDING)


def hidden(away: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the times that outages hid: each with ``WATCH_S`` before it, in which a watch may have reported nothing,
    and as long after it, until all kinds are listed. An outage that begins before that goes on with the one before.
    """
    spans: list[tuple[float, float]] = []
    for start, end in sorted(away):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end + WATCH_S))
        else:
            spans.append((start - WATCH_S, end + WATCH_S))
    return spans


@dataclass(frozen=True)
class Bound:
    """A start or an end: as recorded, and as (earliest, latest) by the witness; in seconds since the epoch."""

    name: str
    recorded: float
    seen: tuple[float, float]
    estimated: bool

    @property
    def error_s(self) -> float:
        """Return how far what is recorded is before or after what was seen."""
        return self.recorded - min(max(self.recorded, self.seen[0]), self.seen[1])


Span = tuple[float, float]


class Billed(NamedTuple):
    """An interval of the ledger; ``end`` is now if it is open."""

    start: float
    end: float
    estimated_start: bool
    estimated_end: bool


def compare(
    intervals: Iterable[UsageInterval],
    holds: Iterable[Hold],
    hidden: Sequence[Span],
    now: float,
    slack_s: float = judge.SLACK_S,
) -> tuple[list[Bound], list[str]]:
    """Return the bounds of a slot's intervals, each beside that of its hold, and in words what is wrong.

    Wrong is a time of more than ``slack_s`` that is billed and was not held, or was held and is not billed; and a whole
    interval that has no hold within ``slack_s``, however short it is. Right is what one outage hid, if each bound of an
    interval that it reaches is estimated. No outage explains an interval that goes on while nothing was held.
    """
    billed, holds = [_billed(one, now) for one in intervals], list(holds)
    wrong = [
        _told("is billed, and was not held", piece)
        for one in billed
        for piece in _unheld(one, [hold.longest(now) for hold in holds], slack_s)
        if not (_is_near(piece, hidden, slack_s) and _is_estimated(one, piece))
    ]
    wrong += [
        _told("was held, and is not billed", piece)
        for hold in holds
        for piece in _unbilled(hold.shortest(now), [one[:2] for one in billed], slack_s)
        if not (_is_near(piece, hidden, slack_s) and _are_estimated(billed, piece))
    ]
    return [bound for one in billed for bound in _bounds(one, holds, now)], wrong


def _billed(one: UsageInterval, now: float) -> Billed:
    end = one.end.timestamp() if one.end else now
    return Billed(one.start.timestamp(), end, one.estimated_start, one.estimated_end)


def _unheld(one: Billed, holds: Sequence[Span], slack_s: float) -> Iterator[Span]:
    span = one[:2]
    for piece in without(span, holds):
        if not _is_near(span, holds, slack_s) if piece == span else piece[1] - piece[0] > slack_s:
            yield piece


def _unbilled(hold: Span, intervals: Sequence[Span], slack_s: float) -> Iterator[Span]:
    for piece in without(hold, intervals):
        is_whole = piece == hold and not _is_near(hold, intervals, slack_s)
        if piece[1] - piece[0] > (UNORDERED_S if is_whole else slack_s):
            yield piece


def without(span: Span, others: Iterable[Span]) -> list[Span]:
    """Return the parts of a time that are in none of the others."""
    parts, at = list[Span](), span[0]
    for start, end in sorted(others):
        if start > at:
            parts.append((at, min(start, span[1])))
        at = max(at, end)
        if at >= span[1]:
            break
    parts.append((at, span[1]))
    return [(start, end) for start, end in parts if start < end]


def _is_near(span: Span, others: Iterable[Span], slack_s: float) -> bool:
    return any(start - slack_s <= span[0] and span[1] <= end + slack_s for start, end in others)


def _is_estimated(one: Billed, piece: Span) -> bool:
    """Return whether the part of an interval reaches one or both of its bounds, and what it reaches is estimated."""
    reached = [one.estimated_start] * (piece[0] == one.start) + [one.estimated_end] * (piece[1] == one.end)
    return bool(reached) and all(reached)


def _are_estimated(billed: Iterable[Billed], piece: Span) -> bool:
    """Return whether each interval that ends where the time begins, or begins where it ends, is estimated there."""
    return all(
        (one.estimated_end or one.end != piece[0]) and (one.estimated_start or one.start != piece[1]) for one in billed
    )


def _told(what: str, piece: Span) -> str:
    start, end = (datetime.fromtimestamp(at, UTC) for at in piece)
    return f"it {what}, for {piece[1] - piece[0]:.1f} s from {start:%T} to {end:%T}, which no outage explains"


def _bounds(one: Billed, holds: Iterable[Hold], now: float) -> Iterator[Bound]:
    """Yield start and end of an interval, each beside that of the holds in its time."""
    within = [hold for hold in holds if hold.longest(now)[0] < one.end and one.start < hold.longest(now)[1]]
    if within:
        yield Bound("start", one.start, within[0].began, one.estimated_start)
        yield Bound("end", one.end, within[-1].ended or (now, now), one.estimated_end)
