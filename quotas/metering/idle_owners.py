"""Attributes idle GPUs to whose unused quota they are. Pure. Exact: Fractions of a GPU, half-open intervals.

At every moment, of the idle GPUs that a group of pools shares:

1. A team's part is its unused nominal quota without what is lent of it (``quotas.limits.lending``), a department's its
   own quota without what is lent. What is lent is used, so it is charged to the borrower.
2. A unit of a pool counts as the GPUs that it is.
3. If these parts are more than what is idle, as teams were promised more than there is, all are scaled down alike.
4. The rest is nobody's quota, and so the platform's.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from quotas.limits import lending
from quotas.limits.tree import ZERO_QUOTA, Quota
from quotas.metering.parts import MICROSECOND

ZERO = Fraction(0)
PARTS = 720_720
"""Parts of a GPU-microsecond in which amounts are whole: divisible by all numbers up to 16."""
Amounts = Mapping[str, Fraction]


@dataclass(frozen=True)
class PoolQuotas:
    """The quotas of a pool by name in Kueue, in its units; a unit is ``unit_gpus`` GPUs."""

    quotas: Mapping[str, Quota]
    unit_gpus: Fraction


class PoolUse(NamedTuple):
    """``units`` of a pool that a team's queue uses in ``[start, end)``; ``end`` is None while it does."""

    pool: str
    queue: str
    units: Fraction
    start: datetime
    end: datetime | None


class IdleSpan(NamedTuple):
    """GPUs that are idle in ``[start, end)``."""

    gpus: Fraction
    start: datetime
    end: datetime


def unused(parents: Mapping[str, str | None], quotas: Mapping[str, Quota], usage: Amounts) -> dict[str, Fraction]:
    """Return the quota of each queue and cohort that it neither uses nor lends, in units; without those of zero."""
    owners = [name for name in parents if quotas.get(name, ZERO_QUOTA).nominal]
    left = {name: max(ZERO, quotas[name].nominal - usage.get(name, ZERO)) for name in owners}
    if any(used > quotas.get(name, ZERO_QUOTA).nominal for name, used in usage.items()):
        for lender, units in lending.lent(parents, quotas, usage).items():
            left[lender] -= units
    return {name: units for name, units in left.items() if units}


def owned(claims: Amounts, idle: Fraction) -> dict[str, Fraction]:
    """Return the idle GPUs of each owner: its claim, scaled down if all claims together are more than is idle."""
    total = sum(claims.values(), ZERO)
    factor = idle / total if total > idle else Fraction(1)
    return {name: gpus * factor for name, gpus in claims.items() if gpus * factor}


def amounts(
    parents: Mapping[str, str | None],
    pools: Mapping[str, PoolQuotas],
    uses: Iterable[PoolUse],
    idle: Iterable[IdleSpan],
    start: datetime,
    end: datetime,
) -> dict[str, int]:
    """Return what each queue and cohort owns of the idle GPUs in ``[start, end)``, while quotas do not change.

    In ``PARTS`` of a GPU-microsecond, rounded down between two changes of use, so that never more is owned than is
    idle.
    """
    found: dict[str, int] = defaultdict(int)
    usage: dict[str, dict[str, Fraction]] = {pool: defaultdict(Fraction) for pool in pools}
    free, claims = ZERO, _claims(parents, pools, usage)
    changes = _changes([*(one for one in uses if one.pool in pools), *idle], start, end)
    for begin, until in pairwise(sorted(changes)):
        is_used = False
        for one, sign in changes[begin]:
            if isinstance(one, PoolUse):
                usage[one.pool][one.queue] += sign * one.units
                is_used = True
            else:
                free += sign * one.gpus
        if is_used:
            claims = _claims(parents, pools, usage)
        length = (until - begin) // MICROSECOND
        for name, gpus in owned(claims, free).items():
            found[name] += gpus.numerator * length * PARTS // gpus.denominator
    return {name: amount for name, amount in found.items() if amount}


def _claims(
    parents: Mapping[str, str | None], pools: Mapping[str, PoolQuotas], usage: Mapping[str, Amounts]
) -> dict[str, Fraction]:
    """Return the unused quota of all pools together, in GPUs."""
    claims: dict[str, Fraction] = defaultdict(Fraction)
    for pool, agreed in pools.items():
        for name, units in unused(parents, agreed.quotas, usage[pool]).items():
            claims[name] += units * agreed.unit_gpus
    return claims


def _changes(
    spans: Sequence[PoolUse | IdleSpan], start: datetime, end: datetime
) -> dict[datetime, list[tuple[PoolUse | IdleSpan, int]]]:
    """Return what begins (1) and ends (-1) at each moment of ``[start, end)``."""
    changes: dict[datetime, list[tuple[PoolUse | IdleSpan, int]]] = defaultdict(list)
    for one in spans:
        begin, until = max(one.start, start), min(one.end or end, end)
        if begin < until:
            changes[begin].append((one, 1))
            changes[until].append((one, -1))
    return changes
