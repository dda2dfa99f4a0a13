"""What a simulated history amounts to by the history itself: GPU-hours and cost by any key of the ledger.

It shares no code with the portal's rating: it adds up shares of GPUs times hours times the price of the time.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from demo import prices
from demo.simulated_history.model import History

HOUR = timedelta(hours=1)
NO_VALUE = "__unallocated__"


class Sum(NamedTuple):
    """GPU-hours and their cost."""

    gpu_hours: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)


def held_by(history: History, key: str) -> dict[str, Sum]:
    """Return what was held by each value of the key, such as ``team``."""
    found: dict[str, Sum] = defaultdict(Sum)
    for one in history.holds:
        held, before = one.begin.attribution, found[str(getattr(one.begin.attribution, key)) or NO_VALUE]
        gpus = held.gpu_share * one.begin.quantity
        cost = gpus * sum(hours * price for hours, price in _priced(history, held.flavor, one.begin.at, one.end))
        found[str(getattr(held, key)) or NO_VALUE] = Sum(
            before.gpu_hours + gpus * _hours(one.begin.at, one.end), before.cost + cost
        )
    return dict(found)


def capacity_hours(history: History, start: datetime, end: datetime) -> Fraction:
    """Return the GPU-hours that there were from ``start`` to ``end``."""
    spans = ((one, max(one.start, start), min(one.end, end)) for one in history.capacity)
    return sum(
        (one.found.count * one.value.gpus * _hours(begin, until) for one, begin, until in spans if begin < until),
        Fraction(0),
    )


def _priced(history: History, flavor: str, start: datetime, end: datetime) -> list[tuple[Fraction, Fraction]]:
    """Return the hours of a time at each price."""
    changes = sorted((one.at, Fraction(one.price.per_gpu_hour)) for one in history.prices if one.flavor == flavor)
    steps = [(history.start, Fraction(prices.PER_GPU_HOUR[flavor])), *changes]
    ends = [at for at, _ in steps[1:]] + [history.until]
    return [
        (_hours(max(at, start), min(until, end)), price)
        for (at, price), until in zip(steps, ends, strict=True)
        if max(at, start) < min(until, end)
    ]


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction((end - start) // timedelta(microseconds=1), HOUR // timedelta(microseconds=1))
