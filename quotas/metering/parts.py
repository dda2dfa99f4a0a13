"""Splits GPU capacity over time into its parts. Pure. Exact: Fractions of a GPU, half-open intervals.

An account is a physical GPU, or the units of one resource where Kubernetes names no GPU. At every moment of an account

    capacity = held + unmanaged + unavailable + stranded + idle + variance

1. Each use is charged its weight, and on a physical GPU at most what the uses before it leave (``gpu_shares``).
2. What is in use blocks ``min(capacity, sum of weights)``. Variance is what is blocked less what is charged, the one
   part with a sign: it is negative for use beyond capacity that is gone.
3. Of the rest, what is unhealthy or not offered is unavailable; what no offered slice fits is stranded; the rest idle.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import chain, pairwise

from quotas.metering import gpu_shares
from quotas.metering.gpu_shares import ONE

ZERO = Fraction(0)
MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_PER_HOUR = 3_600_000_000


class Category(StrEnum):
    HELD = "held"
    UNMANAGED = "unmanaged"
    UNAVAILABLE = "unavailable"
    STRANDED = "stranded"
    IDLE = "idle"
    VARIANCE = "variance"


Fits = Callable[[tuple[str, ...]], Fraction]
"""Returns the most of a GPU that offered slices can take together beside these devices."""


@dataclass(frozen=True)
class CapacitySpan:
    """``gpus`` that exist in ``[start, end)``, of which ``unavailable`` cannot be used; ``end`` is None while they
    exist. ``fits`` is None where every free unit can be had.
    """

    start: datetime
    end: datetime | None
    gpus: Fraction
    unavailable: Fraction = ZERO
    fits: Fits | None = None


@dataclass(frozen=True)
class UsageSpan:
    """A use in ``[start, end)`` that takes ``weight`` of a GPU. ``key`` is its own in the account, ``device`` what it
    uses, where Kubernetes says. ``began`` is when it did where this is a piece of it; ``slot`` and ``fact`` decide
    between uses that began at once (``gpu_shares.rank``).
    """

    key: str
    start: datetime
    end: datetime | None
    weight: Fraction
    category: Category = Category.HELD
    device: str = ""
    began: datetime | None = None
    slot: str = ""
    fact: str = ""

    @property
    def rank(self) -> tuple[bool, datetime, str, str]:
        is_held = self.category == Category.HELD
        return gpu_shares.rank(self.began or self.start, self.slot, self.fact or self.key, is_held=is_held)


@dataclass(frozen=True)
class Part:
    """``gpus`` of a category in ``[start, end)``; ``key`` is that of the use, "" for what is not in use."""

    start: datetime
    end: datetime
    category: Category
    gpus: Fraction
    key: str = ""

    @property
    def gpu_hours(self) -> Fraction:
        return self.gpus * Fraction((self.end - self.start) // MICROSECOND, MICROSECONDS_PER_HOUR)


@dataclass(frozen=True)
class Account:
    """The capacity of an account and its uses."""

    capacity: Sequence[CapacitySpan]
    uses: Sequence[UsageSpan]
    is_gpu: bool = False


def split(account: Account, start: datetime, end: datetime) -> list[Part]:
    """Return the parts of the account in ``[start, end)`` by time, without those of zero.

    Moments at which nothing changed are not in the result: equal parts that adjoin are one.
    """
    rest: dict[Category, list[Part]] = defaultdict(list)
    for begin, until, there in _moments(account, start, end):
        for category, gpus in _not_charged(there, is_gpu=account.is_gpu).items():
            parts = rest[category]
            if parts and (parts[-1].end, parts[-1].gpus) == (begin, gpus):
                parts[-1] = replace(parts[-1], end=until)
            elif gpus:
                parts.append(Part(begin, until, category, gpus))
    return sorted(chain(_charged(account, start, end), *rest.values()), key=lambda p: (p.start, p.category, p.key))


def gpu_hours(parts: Iterable[Part]) -> dict[Category, Fraction]:
    """Return the GPU-hours of every category, zero for those without a part."""
    found = dict.fromkeys(Category, ZERO)
    for part in parts:
        found[part.category] += part.gpu_hours
    return found


def _charged(account: Account, start: datetime, end: datetime) -> Iterator[Part]:
    """Yield what the uses of the account are charged in ``[start, end)``."""
    if account.is_gpu:
        for share in gpu_shares.of_gpu(account.uses, start, end):
            yield Part(share.start, share.end, share.use.category, share.gpus, share.use.key)
        return
    for use in account.uses:
        for begin, until in _within(use, start, end):
            if use.weight:
                yield Part(begin, until, use.category, use.weight, use.key)


@dataclass
class _Totals:
    """What there is at a moment: sums, so that a change costs the same however much there is."""

    gpus: Fraction = ZERO
    unavailable: Fraction = ZERO
    weight: Fraction = ZERO
    devices: list[str] = field(default_factory=list)
    fits: list[Fits] = field(default_factory=list)

    def change(self, one: CapacitySpan | UsageSpan, sign: int) -> None:
        if isinstance(one, CapacitySpan):
            self.gpus += sign * one.gpus
            self.unavailable += sign * one.unavailable
            if one.fits:
                (self.fits.append if sign > 0 else self.fits.remove)(one.fits)
        else:
            self.weight += sign * one.weight
            if sign > 0:
                insort(self.devices, one.device)
            else:
                self.devices.remove(one.device)


def _within(one: CapacitySpan | UsageSpan, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield what of an interval is in ``[start, end)``, if anything is."""
    begin, until = max(one.start, start), min(one.end or end, end)
    if begin < until:
        yield begin, until


def _moments(account: Account, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, _Totals]]:
    """Yield the spans of ``[start, end)`` in which nothing changes, each with what there is."""
    changes: dict[datetime, list[tuple[CapacitySpan | UsageSpan, int]]] = defaultdict(list)
    intervals: list[CapacitySpan | UsageSpan] = [*account.capacity, *account.uses]
    for one in intervals:
        for begin, until in _within(one, start, end):
            changes[begin].append((one, 1))
            changes[until].append((one, -1))
    there = _Totals()
    for begin, until in pairwise(sorted(changes)):
        for one, sign in changes[begin]:
            there.change(one, sign)
        yield begin, until, there


def _not_charged(there: _Totals, *, is_gpu: bool) -> dict[Category, Fraction]:
    charged = min(ONE, there.weight) if is_gpu else there.weight
    blocked = min(there.gpus, there.weight)
    unavailable = min(there.unavailable, there.gpus - blocked)
    free = there.gpus - blocked - unavailable
    usable = there.fits[-1](tuple(there.devices)) if there.fits and free else free
    idle = min(free, usable)
    return {
        Category.VARIANCE: blocked - charged,
        Category.UNAVAILABLE: unavailable,
        Category.STRANDED: free - idle,
        Category.IDLE: idle,
    }
