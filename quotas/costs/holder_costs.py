"""What the intervals of one allocation or Job are charged, each with its evidence."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from django.db.models import QuerySet

from portal.core import money
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import rates, selectors
from quotas.costs.selectors import NO_CHARGE, Charge
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class ChargedInterval:
    """An interval, and its amounts rounded so that those of all intervals add up. `cost` is None without any price."""

    row: UsageInterval
    gpu_hours: Decimal
    unpriced_gpu_hours: Decimal
    cost: Decimal | None


@dataclass(frozen=True)
class HolderCosts:
    """The intervals of a holder, oldest first, and their sum."""

    intervals: Sequence[ChargedInterval]
    charge: Charge
    currency: str


def of_holder(user: User, holder_id: UUID, now: datetime) -> HolderCosts:
    """Return what the intervals of a holder are charged until `now`, as far as they were of teams whose things `user`
    may read.
    """
    rows = list(visible_intervals(user, [holder_id], now).order_by("start", "slot", "key"))
    charges = selectors.charges(rows, rates.read(row.flavor for row in rows), now, by="key")
    found = [charges.get(row.key, NO_CHARGE) for row in rows]
    whole = _sum(found)
    parts = zip(
        rows,
        found,
        _rounded([one.reserved for one in found], money.HOURS_PLACES),
        _rounded([one.unpriced for one in found], money.HOURS_PLACES),
        _rounded([one.cost or Fraction(0) for one in found], money.MONEY_PLACES),
        strict=True,
    )
    intervals = [
        ChargedInterval(row, hours, unpriced, None if one.cost is None else cost)
        for row, one, hours, unpriced, cost in parts
    ]
    return HolderCosts(intervals, whole, selectors.currency())


def visible_intervals(user: User, holders: Collection[UUID], now: datetime) -> QuerySet[UsageInterval]:
    """Return the intervals of some holders until `now`, as far as they were of teams whose things `user` may read."""
    visible = UsageInterval.objects.filter(holder_id__in=holders, start__lte=now)
    if access.sees_all(user):
        return visible
    return visible.filter(team__in=access.visible_teams(user).values("slug"))


def _sum(charges: Sequence[Charge]) -> Charge:
    reserved, used, unpriced, cost = (Fraction(0) for _ in range(4))
    for one in charges:
        reserved, used, unpriced = reserved + one.reserved, used + one.used, unpriced + one.unpriced
        cost += one.cost or 0
    return Charge(reserved, used, unpriced, None if 0 < unpriced == reserved else cost)


def _rounded(amounts: Sequence[Fraction], places: int) -> list[Decimal]:
    whole = sum(amounts, Fraction(0))
    return money.split(whole, amounts, places) if whole else [Decimal(money.text(0, places))] * len(amounts)
