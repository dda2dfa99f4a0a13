"""What the intervals of one allocation or Job are charged, each with its evidence, and what of it no pod used."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from django.db.models import QuerySet

from portal.core import money
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import rates, selectors, unused_time
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.rating import RatedUsage
from quotas.costs.selectors import NO_CHARGE, Charge
from quotas.costs.unused_time import Held
from quotas.metering import charged_intervals, pod_times, published_uuids
from quotas.metering.charged_intervals import Charged
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class ChargedInterval:
    """An interval, and its amounts rounded so that those of all intervals add up. `cost` is None without any price;
    `device_uuid` as in `published_uuids`.
    """

    row: UsageInterval
    device_uuid: str
    gpu_hours: Decimal
    unpriced_gpu_hours: Decimal
    cost: Decimal | None


@dataclass(frozen=True)
class UnusedAmount:
    """GPU-hours that were held while no pod used them, and their cost, None without any price. Those of all days are
    rounded so that they add up.
    """

    gpu_hours: Decimal
    cost: Decimal | None


@dataclass(frozen=True)
class HolderCosts:
    """The intervals of a holder, oldest first, and their sum. What no pod used, in all and on each day on which
    something was held, is None where that was not recorded.
    """

    intervals: Sequence[ChargedInterval]
    charge: Charge
    currency: str
    unused: UnusedAmount | None
    unused_by_day: Mapping[date, UnusedAmount | None]


def of_holder(user: User, holder_id: UUID, now: datetime, calendar: Calendar = UTC_CALENDAR) -> HolderCosts:
    """Return what the intervals of a holder are charged until `now`, as far as they were of teams whose things `user`
    may read. Days are the calendar's.
    """
    rows = list(visible_intervals(user, [holder_id], now).order_by("start", "slot", "key"))
    prices, charged = rates.read(row.flavor for row in rows), list(charged_intervals.until(rows, now))
    charges = selectors.charges_of(charged, prices, now, by="key")
    found = [charges.get(row.key, NO_CHARGE) for row in rows]
    parts = zip(
        rows,
        found,
        _rounded([one.reserved for one in found], money.HOURS_PLACES),
        _rounded([one.unpriced for one in found], money.HOURS_PLACES),
        _rounded([one.cost or Fraction(0) for one in found], money.MONEY_PLACES),
        strict=True,
    )
    uuids = published_uuids.of_intervals(rows)
    intervals = [
        ChargedInterval(row, uuids[row.key], hours, unpriced, None if one.cost is None else cost)
        for row, one, hours, unpriced, cost in parts
    ]
    unused = unused_time.unused(_held(holder_id, charged), prices.rates, prices.lists, calendar, now)
    known = {day: usage for day, usage in unused.by_day.items() if usage is not None}
    by_day = dict(zip(known, _amounts(list(known.values())), strict=True))
    return HolderCosts(
        intervals,
        _sum(found),
        selectors.currency(),
        None if unused.whole is None else _amounts([unused.whole])[0],
        {day: by_day.get(day) for day in unused.by_day},
    )


def visible_intervals(user: User, holders: Collection[UUID], now: datetime) -> QuerySet[UsageInterval]:
    """Return the intervals of some holders until `now`, as far as they were of teams whose things `user` may read."""
    visible = UsageInterval.objects.filter(holder_id__in=holders, start__lte=now)
    if access.sees_all(user):
        return visible
    return visible.filter(team__in=access.visible_teams(user).values("slug"))


def _held(holder_id: UUID, charged: Sequence[Charged[UsageInterval]]) -> Iterator[Held]:
    """Yield what is held, with its pods. An interval of a Job says itself whether pods use it, and names no member."""
    since = pod_times.recorded_since({one.row.cluster_id for one in charged if one.row.member})
    pods = pod_times.of_holder(holder_id) if since else []
    for one in charged:
        usage = selectors.usage_of(one)
        is_unused, is_job = one.row.unused, not one.row.member
        if is_unused or is_job:
            yield Held(usage, [] if is_unused else [(one.start, None)], one.start)
        else:
            yield Held(usage, pods, since.get(one.row.cluster_id))


def _amounts(usages: Sequence[RatedUsage]) -> list[UnusedAmount]:
    hours = _rounded([usage.gpu_hours for usage in usages], money.HOURS_PLACES)
    costs = _rounded([usage.priced_cost for usage in usages], money.MONEY_PLACES)
    parts = zip(usages, hours, costs, strict=True)
    return [UnusedAmount(hour, None if usage.cost is None else cost) for usage, hour, cost in parts]


def _sum(charges: Sequence[Charge]) -> Charge:
    reserved, used, unpriced, cost = (Fraction(0) for _ in range(4))
    for one in charges:
        reserved, used, unpriced = reserved + one.reserved, used + one.used, unpriced + one.unpriced
        cost += one.cost or 0
    return Charge(reserved, used, unpriced, None if 0 < unpriced == reserved else cost)


def _rounded(amounts: Sequence[Fraction], places: int) -> list[Decimal]:
    whole = sum(amounts, Fraction(0))
    return money.split(whole, amounts, places) if whole else [Decimal(money.text(0, places))] * len(amounts)
