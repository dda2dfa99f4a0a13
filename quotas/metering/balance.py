"""Checks that the ledger of a cluster adds up in an hour, account by account.

1. The parts of an account add up to its capacity, as the database sums it.
2. Uses of a physical GPU take at most one GPU at every moment.
3. No part but variance is negative.
4. No slot is held twice at a time, and no unit of capacity is counted twice.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Annotated

from portal.core import money
from quotas.catalog import layouts
from quotas.metering import accounts, ledger_sums, parts
from quotas.metering.accounts import AccountKey
from quotas.metering.hours import HOUR
from quotas.metering.ledger_sums import Overlap
from quotas.metering.parts import Account, Category, Part, UsageSpan

EXACT_PLACES = 10
"""Decimal places of GPU-hours in which a microsecond is seen."""
ZERO = Fraction(0)


class Check(StrEnum):
    PARTS_EQUAL_CAPACITY = "parts_equal_capacity"
    USES_FIT_GPU = "uses_fit_gpu"
    PARTS_NOT_NEGATIVE = "parts_not_negative"
    NO_OVERLAP = "no_overlap"
    ROLLUP_EQUALS_CAPACITY = "rollup_equals_capacity"
    HELD_AS_OBSERVED = "held_as_observed"
    USE_HAS_CATEGORY = "use_has_category"


@dataclass(frozen=True)
class Failure:
    """A row that fails a check: an account, or a slot. ``message`` is a sentence for people."""

    check: Check
    cluster: str
    flavor: str
    node: Annotated[str, "Empty where GPUs are counted over the nodes of a flavor."]
    name: Annotated[str, "Of the GPU, the resource, the slot or the Job."]
    expected: str
    found: str
    message: str


@dataclass(frozen=True)
class HourBalance:
    """The GPU-hours of a cluster in an hour: the capacity that the database sums, and the parts."""

    accounts: int
    capacity: Fraction
    parts: Mapping[Category, Fraction]
    failures: Sequence[Failure]


def of_hour(cluster: str, hour: datetime) -> HourBalance:
    """Return the balance of the cluster in the hour that begins at ``hour``, in a fixed number of queries."""
    end = hour + HOUR
    read, summed = accounts.read(hour, end, cluster), ledger_sums.capacity(cluster, hour, end)
    totals = dict.fromkeys(Category, ZERO)
    failures = [_overlap(cluster, one) for one in ledger_sums.overlaps(cluster, hour, end)]
    keys = sorted(read.keys() | summed.keys())
    for key in keys:
        account = read.get(key, Account((), ()))
        found = parts.split(account, hour, end)
        for category, amount in parts.gpu_hours(found).items():
            totals[category] += amount
        failures += check_parts(key, found, summed.get(key, ZERO))
        if account.is_gpu:
            failures += check_uses(key, account.uses, hour, end)
    return HourBalance(len(keys), sum(summed.values(), ZERO), totals, failures)


def check_parts(key: AccountKey, found: Collection[Part], capacity: Fraction) -> Iterator[Failure]:
    """Yield what fails of an account's parts, given its capacity in GPU-hours."""
    amounts = parts.gpu_hours(found)
    total = sum(amounts.values(), ZERO)
    if total != capacity:
        expected, there = hours_text(capacity), hours_text(total)
        words = f"The parts of {title(key)} add up to {there} GPU-hours; its capacity was {expected}."
        yield failure(Check.PARTS_EQUAL_CAPACITY, key, expected, there, words)
    for category in Category:
        gpus = min((part.gpus for part in found if part.category == category), default=ZERO)
        if category != Category.VARIANCE and gpus < 0:
            words = f"The part {category.value} of {title(key)} was {gpus} GPUs; only variance can be negative."
            yield failure(Check.PARTS_NOT_NEGATIVE, key, "0 or more", str(gpus), words)


def check_uses(key: AccountKey, uses: Iterable[UsageSpan], start: datetime, end: datetime) -> Iterator[Failure]:
    """Yield a failure if uses of a physical GPU take more than one GPU at a moment of ``[start, end)``."""
    changes: dict[datetime, list[tuple[bool, UsageSpan]]] = defaultdict(list)
    for use in uses:
        begin, until = max(use.start, start), min(use.end or end, end)
        if begin < until:
            changes[begin].append((True, use))
            changes[until].append((False, use))
    running: dict[str, UsageSpan] = {}
    most, moment = Fraction(1), None
    for at in sorted(changes):
        for begins, use in sorted(changes[at], key=lambda change: change[0]):
            if begins:
                running[use.key] = use
            else:
                running.pop(use.key, None)
        total = _taken_together(running.values())
        if total > most:
            most, moment = total, at
    if moment is not None:
        words = f"Uses of {title(key)} add up to {most} GPUs at {_at(moment)}; it is one GPU."
        yield failure(Check.USES_FIT_GPU, key, "at most 1", str(most), words)


def _taken_together(uses: Iterable[UsageSpan]) -> Fraction:
    """Return what uses of one GPU take at a time.

    What they are charged is never more than the GPU, so it shows nothing. A MIG slice takes at most what the others
    leave, since layouts that NVIDIA allows may add up to more than the GPU, but each slice of one leaves something to
    the next (ADR 35). All else takes its weight, and so does a slice for which nothing is left.
    """
    total = ZERO
    for use in sorted(uses, key=lambda use: use.rank):
        left = 1 - total
        total += min(use.weight, left) if left > 0 and layouts.label_of_device(use.device) else use.weight
    return total


def _overlap(cluster: str, one: Overlap) -> Failure:
    words = f"{one.name} is held by more than one interval at {_at(one.at)}, so that time is charged twice."
    if one.ledger == "capacity":
        words = f"The capacity {one.name} of node {one.node} is recorded more than once at {_at(one.at)}."
    found = f"{one.intervals} intervals"
    return Failure(Check.NO_OVERLAP, cluster, one.flavor, one.node, one.name, "1 interval at a time", found, words)


def failure(check: Check, key: AccountKey, expected: str, found: str, message: str) -> Failure:
    """Return what fails of an account."""
    return Failure(check, key.cluster, key.flavor, key.node, key.name, expected, found, message)


def title(key: AccountKey) -> str:
    """Return the account in the words of a sentence."""
    if key.node:
        return f"{key.name} on node {key.node}"
    return f"{key.name or 'the reservations'} of flavor {key.flavor}" if key.flavor else f"{key.name} without a flavor"


def hours_text(amount: Fraction) -> str:
    """Return GPU-hours with as many places as they have, up to EXACT_PLACES."""
    return money.text(amount, EXACT_PLACES).rstrip("0").removesuffix(".")


def _at(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"
