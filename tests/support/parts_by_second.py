"""The parts of an account second by second, implemented independently of the code under test."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction

from quotas.metering.parts import Account, UsageSpan

SECOND = timedelta(seconds=1)

Parts = dict[tuple[str, str], Fraction]


def by_second(account: Account, start: datetime, end: datetime) -> Iterator[tuple[datetime, Parts]]:
    """Yield each second of ``[start, end)`` with its GPUs by category and key, without those of zero.

    Every time of the account has to be a whole second.
    """
    now = start
    while now < end:
        running = [use for use in account.uses if _lasts(use.start, use.end, now)]
        parts = _parts(account, running, _charged(account, running), now)
        yield now, {name: gpus for name, gpus in parts.items() if gpus != 0}
        now += SECOND


def _charged(account: Account, running: list[UsageSpan]) -> dict[str, Fraction]:
    """Return what each use is charged: on a GPU one after the other, what is held first, until the GPU is charged."""
    left, charged = Fraction(1), dict[str, Fraction]()
    for use in sorted(running, key=lambda use: (use.category.value != "held", use.start, use.key)):
        charged[use.key] = left if account.is_gpu and left < use.weight else use.weight
        left -= charged[use.key]
    return charged


def _parts(account: Account, running: list[UsageSpan], charged: dict[str, Fraction], now: datetime) -> Parts:
    capacity = broken = weight = Fraction(0)
    fits = None
    for one in account.capacity:
        if _lasts(one.start, one.end, now):
            capacity += one.gpus
            broken += one.unavailable
            fits = one.fits
    parts: Parts = {}
    for use in running:
        parts[use.category.value, use.key] = charged[use.key]
        weight += use.weight
    in_use = weight if weight < capacity else capacity
    not_in_use = capacity - in_use
    unavailable = broken if broken < not_in_use else not_in_use
    idle = free = not_in_use - unavailable
    if fits is not None and free > 0:
        usable = fits(tuple(sorted(use.device for use in running)))
        idle = usable if usable < free else free
    charge = sum(parts.values(), Fraction(0))
    return parts | {
        ("variance", ""): in_use - charge,
        ("unavailable", ""): unavailable,
        ("stranded", ""): free - idle,
        ("idle", ""): idle,
    }


def _lasts(start: datetime, end: datetime | None, now: datetime) -> bool:
    return start <= now and (end is None or now < end)
