"""What each use of a physical GPU is charged of it, from the times at which uses begin and end. Pure.

At every moment the uses that there are come in order: what is held before what is unmanaged, then who began first. Each
takes its weight, but at most what those before it leave. So the uses of a GPU are charged at most the GPU, and the
order in which they were recorded has no influence.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

ONE = Fraction(1)


class GpuUse(Protocol):
    """A use in ``[start, end)`` of ``weight`` of a GPU; ``end`` is None while it lasts. ``rank`` is its place in the
    order, and its own.
    """

    @property
    def start(self) -> datetime: ...
    @property
    def end(self) -> datetime | None: ...
    @property
    def weight(self) -> Fraction: ...
    @property
    def rank(self) -> tuple[bool, datetime, str, str]: ...


Use = TypeVar("Use", bound=GpuUse)


@dataclass(frozen=True)
class Share(Generic[Use]):
    """The ``gpus`` that a use is charged in ``[start, end)``."""

    use: Use
    start: datetime
    end: datetime
    gpus: Fraction


def rank(start: datetime, slot: str, fact: str, *, is_held: bool = True) -> tuple[bool, datetime, str, str]:
    """Return the place of a use among those of its GPU. Of uses that began at once the smaller slot is first, which has
    the device's name; ``fact`` is computed from the observation, and decides if one slot has two.
    """
    return not is_held, start, slot, fact


def of_gpu(uses: Iterable[Use], start: datetime, end: datetime) -> list[Share[Use]]:
    """Return what the uses of one GPU are charged in ``[start, end)``, without what is zero, by use and time. Equal
    shares of a use that adjoin are one.
    """
    changes: dict[datetime, list[tuple[bool, Use]]] = defaultdict(list)
    for use in uses:
        begin, until = max(use.start, start), min(use.end or end, end)
        if begin < until:
            changes[begin].append((True, use))
            changes[until].append((False, use))
    found: dict[tuple[bool, datetime, str, str], list[Share[Use]]] = defaultdict(list)
    running: list[Use] = []
    for begin, until in pairwise(sorted(changes)):
        for begins, use in changes[begin]:
            if begins:
                insort(running, use, key=lambda one: one.rank)
            else:
                running.remove(use)
        for use, gpus in _now(running):
            before = found[use.rank]
            if before and (before[-1].end, before[-1].gpus) == (begin, gpus):
                before[-1] = replace(before[-1], end=until)
            else:
                before.append(Share(use, begin, until, gpus))
    return [share for _, shares in sorted(found.items()) for share in shares]


def _now(running: Iterable[Use]) -> Iterator[tuple[Use, Fraction]]:
    """Yield what each use of a moment is charged, until nothing is left; they are in order."""
    left = ONE
    for use in running:
        if not left:
            return
        gpus = min(use.weight, left)
        left -= gpus
        if gpus:
            yield use, gpus
