"""Computes from the ledger and the history of quotas whose unused quota idle GPUs were."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from portal.core import money
from quotas.catalog.versions import Versions
from quotas.costs import rating
from quotas.costs.rating import Rates
from quotas.limits import names
from quotas.limits.history import QuotaPeriod
from quotas.metering import idle_owners
from quotas.metering.accounts import AccountKey
from quotas.metering.idle_owners import IdleSpan, PoolQuotas, PoolUse
from quotas.metering.models import OwnedIdleHour
from quotas.metering.parts import Category, Part

PRICE_PLACES = 10


class HeldSlices(NamedTuple):
    """``slices`` of an offering that a team held in ``[start, end)``, which take ``gpus``."""

    team: str
    flavor: str
    offering: str
    slices: int
    gpus: Fraction
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class QuotaHistory:
    """What applied when: quotas by period, and what pools flavors had."""

    periods: Sequence[QuotaPeriod]
    catalogue: Versions


class _Group(NamedTuple):
    """The GPUs of a flavor that its pools share: those of one resource of the device plugin, "" by DRA."""

    flavor: str
    resource: str


def rows(
    cluster: str,
    history: QuotaHistory,
    held: Iterable[HeldSlices],
    parts: Mapping[AccountKey, Iterable[Part]],
    rates: Rates,
    start: datetime,
    end: datetime,
) -> list[OwnedIdleHour]:
    """Return whose the idle among these parts of ``[start, end)`` was, as rows that are not saved.

    Quotas, pools and prices are those of each moment; what is held counts in the pool that it was of when it began.
    """
    idle: dict[_Group, list[IdleSpan]] = defaultdict(list)
    for key, of_account in parts.items():
        group = _Group(key.flavor, "" if key.node else key.name)
        idle[group] += [IdleSpan(one.gpus, one.start, one.end) for one in of_account if one.category == Category.IDLE]
    uses: dict[str, list[PoolUse]] = defaultdict(list)
    for one in held:
        uses[one.flavor] += _pool_uses(one, history.catalogue)
    found: dict[tuple[str, str, str, Fraction | None], int] = defaultdict(int)
    for group, spans in idle.items():
        for period, price, begin, until in _periods(group.flavor, history, rates, start, end) if spans else ():
            pools = _pools(group, history.catalogue, period, begin)
            owned = idle_owners.amounts(period.parents, pools, uses[group.flavor], spans, begin, until)
            for name, amount in owned.items():
                found[group.flavor, *_owner(name, period.parents), price] += amount
    return [
        OwnedIdleHour(
            cluster_id=cluster,
            start=start,
            flavor=flavor,
            department=department,
            team=team,
            price=None if price is None else Decimal(money.text(price, PRICE_PLACES)),
            amount=amount,
        )
        for (flavor, department, team, price), amount in found.items()
    ]


def _pool_uses(one: HeldSlices, catalogue: Versions) -> Iterator[PoolUse]:
    """Yield the use of the pool: a unit for each slice by device plugin, else as many units as it takes GPUs."""
    version = catalogue.at(one.flavor, one.start)
    name = version.pool(one.offering)
    if name in version.pools:
        pool = version.pools[name]
        units = Fraction(one.slices) if pool.resource else one.gpus / pool.unit_gpus
        yield PoolUse(f"{one.flavor}/{name}", names.cluster_queue(one.team), units, one.start, one.end)


def _periods(
    flavor: str, history: QuotaHistory, rates: Rates, start: datetime, end: datetime
) -> Iterator[tuple[QuotaPeriod, Fraction | None, datetime, datetime]]:
    """Yield the times of ``[start, end)`` with the same quotas, pools and price."""
    for period in history.periods:
        begin, until = max(period.start, start), min(period.end, end)
        for since, to, _ in history.catalogue.between(flavor, begin, until) if begin < until else ():
            for price, first, last in rating.by_price(rates.get(flavor, ()), since, to or until):
                yield period, price, first, last


def _pools(group: _Group, catalogue: Versions, period: QuotaPeriod, at: datetime) -> dict[str, PoolQuotas]:
    """Return the pools of the group of which anybody has quota."""
    found = {}
    for name, pool in catalogue.at(group.flavor, at).pools.items():
        key = f"{group.flavor}/{name}"
        if pool.resource == group.resource and key in period.quotas:
            found[key] = PoolQuotas(period.quotas[key], pool.unit_gpus)
    return found


def _owner(name: str, parents: Mapping[str, str | None]) -> tuple[str, str]:
    """Return department and team of a queue or cohort."""
    team, department = names.team_of(name), names.department_of(name)
    return (department, "") if department else (names.department_of(parents[name] or ""), team)
