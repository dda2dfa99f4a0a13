"""Splits GPU capacity over time into its parts. Pure. Exact: Fractions of a GPU, half-open intervals.

An account is a physical GPU, or the units of one resource where Kubernetes names no GPU. At every moment of an account

    capacity = held + unmanaged + unavailable + stranded + idle + variance

1. Each use is charged its weight, and on a physical GPU at most what the uses before it leave (``charges``).
2. What is in use blocks ``min(capacity, sum of weights)``. Variance is what is blocked less what is charged, the one
   part with a sign: MIG profiles whose parts add up to more than the GPU, and use beyond capacity that is gone.
3. Of the rest, what is unhealthy or not offered is unavailable; what no offered slice fits is stranded; the rest idle.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import chain, pairwise

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


@dataclass(frozen=True)
class CapacitySpan:
    """``gpus`` that exist in ``[start, end)``, of which ``unavailable`` cannot be used; ``end`` is None while they
    exist.
    """

    start: datetime
    end: datetime | None
    gpus: Fraction
    unavailable: Fraction = ZERO


@dataclass(frozen=True)
class UsageSpan:
    """A use in ``[start, end)`` that takes ``weight`` of a GPU. ``key`` is its own in the account, ``device`` what it
    uses, where Kubernetes says. ``charge`` is what it is charged, None where ``charges`` says it.
    """

    key: str
    start: datetime
    end: datetime | None
    weight: Fraction
    category: Category = Category.HELD
    device: str = ""
    charge: Fraction | None = None


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


Fits = Callable[[tuple[str, ...]], Fraction]
"""Returns the most of a GPU that offered slices can take together beside these devices."""


@dataclass(frozen=True)
class Account:
    """The capacity of an account and its uses. ``fits`` is None where every free unit can be had.

    Of a physical GPU it has the uses before the window too: what later ones are charged depends on them.
    """

    capacity: Sequence[CapacitySpan]
    uses: Sequence[UsageSpan]
    is_gpu: bool = False
    fits: Fits | None = None


def charges(uses: Iterable[UsageSpan]) -> dict[str, Fraction]:
    """Return what each use of one physical GPU is charged, by key.

    That is its weight, but at most what the uses that began before it leave of the GPU at its start; of uses that begin
    at the same time the smaller key is first. A use for which nothing is left is charged its weight. The order in which
    uses were recorded has no influence.
    """
    found: dict[str, Fraction] = {}
    before: list[UsageSpan] = []
    for use in sorted(uses, key=lambda use: (use.start, use.key)):
        before = [other for other in before if other.end is None or other.end > use.start]
        left = 1 - sum((found[other.key] for other in before), ZERO)
        by_rule = min(use.weight, left) if left > 0 else use.weight
        found[use.key] = by_rule if use.charge is None else use.charge
        before.append(use)
    return found


def split(account: Account, start: datetime, end: datetime) -> list[Part]:
    """Return the parts of the account in ``[start, end)`` by time, without those of zero.

    Moments at which nothing changed are not in the result: equal parts that adjoin are one.
    """
    charged = charges(account.uses) if account.is_gpu else {use.key: _charge(use) for use in account.uses}
    found = [
        Part(begin, until, use.category, charged[use.key], use.key)
        for use in account.uses
        for begin, until in _within(use, start, end)
        if charged[use.key]
    ]
    rest: dict[Category, list[Part]] = defaultdict(list)
    for begin, until, there in _moments(account, charged, start, end):
        for category, gpus in _not_charged(there, account.fits).items():
            parts = rest[category]
            if parts and (parts[-1].end, parts[-1].gpus) == (begin, gpus):
                parts[-1] = replace(parts[-1], end=until)
            elif gpus:
                parts.append(Part(begin, until, category, gpus))
    return sorted(chain(found, *rest.values()), key=lambda p: (p.start, p.category, p.key))


def gpu_hours(parts: Iterable[Part]) -> dict[Category, Fraction]:
    """Return the GPU-hours of every category, zero for those without a part."""
    found = dict.fromkeys(Category, ZERO)
    for part in parts:
        found[part.category] += part.gpu_hours
    return found


def capacity_hours(account: Account, start: datetime, end: datetime) -> Fraction:
    """Return the GPU-hours that exist in ``[start, end)``, computed from each capacity by itself."""
    total = ZERO
    for one in account.capacity:
        begin, until = max(one.start, start), min(one.end or end, end)
        total += one.gpus * Fraction(max(0, (until - begin) // MICROSECOND), MICROSECONDS_PER_HOUR)
    return total


def _charge(use: UsageSpan) -> Fraction:
    return use.weight if use.charge is None else use.charge


@dataclass
class _Totals:
    """What there is at a moment: sums, so that a change costs the same however much there is."""

    gpus: Fraction = ZERO
    unavailable: Fraction = ZERO
    weight: Fraction = ZERO
    charged: Fraction = ZERO
    devices: list[str] = field(default_factory=list)

    def change(self, one: CapacitySpan | UsageSpan, sign: int, charged: Mapping[str, Fraction]) -> None:
        if isinstance(one, CapacitySpan):
            self.gpus += sign * one.gpus
            self.unavailable += sign * one.unavailable
        else:
            self.weight += sign * one.weight
            self.charged += sign * charged[one.key]
            if sign > 0:
                insort(self.devices, one.device)
            else:
                self.devices.remove(one.device)


def _within(one: CapacitySpan | UsageSpan, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield what of an interval is in ``[start, end)``, if anything is."""
    begin, until = max(one.start, start), min(one.end or end, end)
    if begin < until:
        yield begin, until


def _moments(
    account: Account, charged: Mapping[str, Fraction], start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime, _Totals]]:
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
            there.change(one, sign, charged)
        yield begin, until, there


def _not_charged(there: _Totals, fits: Fits | None) -> dict[Category, Fraction]:
    blocked = min(there.gpus, there.weight)
    unavailable = min(there.unavailable, there.gpus - blocked)
    free = there.gpus - blocked - unavailable
    usable = fits(tuple(there.devices)) if fits and free else free
    idle = min(free, usable)
    return {
        Category.VARIANCE: blocked - there.charged,
        Category.UNAVAILABLE: unavailable,
        Category.STRANDED: free - idle,
        Category.IDLE: idle,
    }
