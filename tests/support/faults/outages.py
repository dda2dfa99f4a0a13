"""Outages of processes that were killed, and the bounds in the ledger that they explain."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from allocations.cluster.client import WATCH_S
from deploy.local.runner import Local
from quotas.metering.models import UsageInterval
from tests.support.faults import judge
from tests.support.faults.witness import Hold

READY_WITHIN_S = 180.0
HIDING = frozenset({"watcher", "postgres", "kube-apiserver"})
"""Processes without which no change is recorded."""


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
        self._local.wait_ready(outage.process, READY_WITHIN_S)
        outage.end = time.time()

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


class Billed(NamedTuple):
    """An interval of the ledger; ``end`` is now if it is open."""

    start: float
    end: float
    estimated_start: bool
    estimated_end: bool


def compare(
    intervals: Iterable[UsageInterval],
    holds: Iterable[Hold],
    hidden: Sequence[tuple[float, float]],
    now: float,
    slack_s: float = judge.SLACK_S,
    unread: Sequence[tuple[float, float]] = (),
) -> tuple[list[Bound], list[str]]:
    """Return the bounds of a slot's intervals, each beside that of its hold, and in words what is wrong with them.

    A hold without an interval was hidden as a whole by an outage, or is not certain. An interval without a hold was
    hidden by an outage too, since the witness reads from the API server, or by one of the times ``unread`` between two
    of its readings. It may miss that a slice was free for less than ``slack_s``, so intervals and holds with a shorter
    time between them count as one.
    """
    compared, wrong = list[Bound](), list[str]()
    for billed, hold in _pairs(_billed(intervals, now, slack_s), _held(holds, slack_s), now, slack_s):
        if billed is not None and hold is not None:
            found = [
                Bound("start", billed.start, hold.began, billed.estimated_start),
                Bound("end", billed.end, hold.ended or (now, now), billed.estimated_end),
            ]
            compared += found
            wrong += filter(None, (unexplained(bound, hidden, slack_s) for bound in found))
            continue
        span = _longest(hold, now) if hold is not None else billed[:2] if billed is not None else (now, now)
        if hold is not None and not hold.is_certain:
            continue
        if not _is_hidden(span, hidden if hold is not None else [*hidden, *unread], slack_s):
            what = "is billed, and was not held" if hold is None else "was held, and is not billed"
            wrong.append(f"it {what}, for {span[1] - span[0]:.1f} s that no outage explains")
    return compared, wrong


def unexplained(bound: Bound, hidden: Iterable[tuple[float, float]], slack_s: float) -> str:
    """Return in words what is wrong with a bound, "" if nothing is.

    One that was watched is that of the hold. An estimated one is in a time that an outage hid, and so is the moment of
    the hold: the error is less than that time.
    """
    if abs(bound.error_s) <= slack_s:
        return ""
    words = f"its {bound.name} is recorded {bound.error_s:+.1f} s off"
    if not bound.estimated:
        return f"{words}, and is not estimated"
    return "" if _is_hidden((bound.recorded, *bound.seen), hidden, slack_s) else f"{words}, which no outage explains"


def _is_hidden(moments: Iterable[float], hidden: Iterable[tuple[float, float]], slack_s: float) -> bool:
    at = list(moments)
    return any(a - slack_s <= min(at) and max(at) <= b + slack_s for a, b in hidden)


def _billed(intervals: Iterable[UsageInterval], now: float, slack_s: float) -> list[Billed]:
    found: list[Billed] = []
    for one in intervals:
        start, end = one.start.timestamp(), one.end.timestamp() if one.end else now
        if found and start - found[-1].end <= slack_s:
            found[-1] = found[-1]._replace(end=end, estimated_end=one.estimated_end)
        elif start != end:
            found.append(Billed(start, end, one.estimated_start, one.estimated_end))
    return found


def _held(holds: Iterable[Hold], slack_s: float) -> list[Hold]:
    found: list[Hold] = []
    for one in holds:
        if found and (last := found[-1].ended) and one.began[0] - last[1] <= slack_s:
            found[-1] = Hold(found[-1].began, one.ended, found[-1].is_certain or one.is_certain)
        else:
            found.append(one)
    return found


def _pairs(
    intervals: list[Billed], holds: list[Hold], now: float, slack_s: float
) -> Iterator[tuple[Billed | None, Hold | None]]:
    """Yield intervals and holds by time, those together that overlap."""
    while intervals and holds:
        billed, held = intervals[0], _longest(holds[0], now)
        if billed.end + slack_s < held[0]:
            yield intervals.pop(0), None
        elif held[1] + slack_s < billed.start:
            yield None, holds.pop(0)
        else:
            yield intervals.pop(0), holds.pop(0)
    yield from ((one, None) for one in intervals)
    yield from ((None, one) for one in holds)


def _longest(hold: Hold, now: float) -> tuple[float, float]:
    """Return start and end of the longest time that the hold may have had."""
    return hold.began[0], hold.ended[1] if hold.ended else now
