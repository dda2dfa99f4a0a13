"""Rolls the ledger up by hour: what each account, and each team and project, had, by category and price, and whose
unused quota was idle.

Whole numbers and no money: GPU-microseconds for each denominator of a part of a GPU, and for each price. So sums of
roll-ups are those of the ledger to the last digit (``quotas.costs.ledger``).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Sum

from portal.core import clock, money
from portal.core.locks import advisory_lock
from quotas.catalog import versions
from quotas.costs import capacity_costs, owned_idle, rates, rating
from quotas.costs.models import CapacityCostDay, CapacityCostHour, CapacityCostMonth
from quotas.costs.owned_idle import HeldSlices, QuotaHistory
from quotas.costs.rates import PriceList
from quotas.limits import history
from quotas.metering import accounts, parts
from quotas.metering.accounts import AccountKey
from quotas.metering.hours import DAY, HOUR, day_of, hours_between, month_of, next_month
from quotas.metering.models import (
    AccountHour,
    DayTotal,
    DirtyHour,
    ForeignUse,
    HourTotal,
    MonthTotal,
    OwnedIdleDay,
    OwnedIdleHour,
    OwnedIdleMonth,
    RolledUpHour,
    UsageInterval,
)
from quotas.metering.parts import MICROSECOND, Account, Part

PRICE_PLACES = 10
SHARED = ("flavor", "category", "offering", "department", "team", "project", "price", "denominator")
"""The columns by which the accounts of an hour are added up."""
OWNED = ("flavor", "department", "team", "price")
"""Those by which what is owned of the idle is."""
OF_AN_HOUR: Sequence[Any] = (AccountHour, HourTotal, OwnedIdleHour)
AddedUp = Sequence[tuple[Any, Any, Sequence[str]]]
"""Totals, those that they are added up from, and their columns but for the amount."""
OF_A_DAY: AddedUp = (
    (DayTotal, HourTotal, SHARED),
    (OwnedIdleDay, OwnedIdleHour, OWNED),
    (CapacityCostDay, CapacityCostHour, capacity_costs.COLUMNS),
)
OF_A_MONTH: AddedUp = (
    (MonthTotal, DayTotal, SHARED),
    (OwnedIdleMonth, OwnedIdleDay, OWNED),
    (CapacityCostMonth, CapacityCostDay, capacity_costs.COLUMNS),
)


Labels = tuple[tuple[str, str], ...]
"""Pairs of key and value, by key."""


class Holder(NamedTuple):
    """Who uses a part and what of; empty for what nobody uses."""

    node: str = ""
    holder_id: UUID | None = None
    offering: str = ""
    kind: str = ""
    department: str = ""
    team: str = ""
    project: str = ""
    member: str = ""
    namespace: str = ""
    labels: Labels = ()
    owner_kind: str = ""


@dataclass(frozen=True)
class Ledger:
    """What the ledger of a cluster has in ``[start, end)``: accounts, who their uses are by, the uses that have the
    price 0, and what each takes of a GPU.
    """

    accounts: Mapping[AccountKey, Account]
    holders: Mapping[str, Holder]
    uncharged: Collection[str]
    shares: Mapping[str, Fraction]
    prices: PriceList
    held: Sequence[HeldSlices]
    history: QuotaHistory


Split = Mapping[AccountKey, Sequence[Part]]
"""The parts of accounts."""


def read(cluster: str, start: datetime, end: datetime) -> Ledger:
    """Return the ledger of a cluster in ``[start, end)``, in a fixed number of queries."""
    found = accounts.read(start, end, cluster)
    # Read last: rows are never deleted, so every use of the accounts is among them.
    within = Q(end=None) | Q(end__gt=start)
    holders, uncharged, shares, held = {}, set(), {}, []
    fields = [name for name in Holder._fields if name not in ("labels", "owner_kind")]
    usage = UsageInterval.objects.filter(within, cluster=cluster, start__lt=end).order_by()
    more = ("uncharged", "labels", "flavor", "count", "gpu_share_numerator", "gpu_share_denominator", "start", "end")
    for key, is_uncharged, labels, flavor, count, numerator, denominator, since, to, *values in usage.values_list(
        "key", *more, *fields
    ):
        holder = holders[str(key)] = Holder(*values)._replace(labels=tuple(sorted(labels.items())))
        share = shares[str(key)] = Fraction(numerator, denominator)
        held.append(HeldSlices(holder.team, flavor, holder.offering, count, count * share, since, to))
        if is_uncharged:
            uncharged.add(str(key))
    foreign = ForeignUse.objects.filter(within, cluster=cluster, start__lt=end).order_by()
    for key, node, namespace, owner_kind in foreign.values_list("pk", "node", "namespace", "owner_kind"):
        holders[f"foreign/{key}"] = Holder(node, namespace=namespace, owner_kind=owner_kind)
    quotas = QuotaHistory(history.periods(cluster, start, end), versions.read(cluster))
    return Ledger(found, holders, uncharged, shares, rates.read({key.flavor for key in found}), held, quotas)


def split(ledger: Ledger, start: datetime, end: datetime) -> Split:
    """Return the parts of every account in ``[start, end)``."""
    return {key: parts.split(account, start, end) for key, account in ledger.accounts.items()}


def owned_rows(cluster: str, ledger: Ledger, found: Split, start: datetime, end: datetime) -> list[OwnedIdleHour]:
    """Return whose the idle among the parts of ``[start, end)`` was, as rows that are not saved."""
    return owned_idle.rows(cluster, ledger.history, ledger.held, found, ledger.prices.rates, start, end)


def rows(ledger: Ledger, found: Split, start: datetime) -> list[AccountHour]:
    """Return what every account had, given its parts from ``start`` on, as rows that are not saved."""
    amounts: dict[tuple[AccountKey, str, Holder, Fraction | None, int], int] = defaultdict(int)
    for key, of_account in found.items():
        of_flavor = ledger.prices.rates.get(key.flavor, ())
        for part in of_account:
            holder = _holder(ledger, key, part)
            listed, is_charged = ledger.prices.lists.get(holder.offering, ()), part.key not in ledger.uncharged
            share = ledger.shares.get(part.key, rating.ONE)
            in_force = rating.by_price(
                of_flavor, part.start, part.end, listed=listed, slice_share=share, is_charged=is_charged
            )
            for price, since, until in in_force:
                group = (key, part.category.value, holder, price, part.gpus.denominator)
                amounts[group] += part.gpus.numerator * ((until - since) // MICROSECOND)
    return [
        AccountHour(
            cluster_id=key.cluster,
            start=start,
            flavor=key.flavor,
            is_gpu=bool(key.node),
            name=key.name,
            category=category,
            price=None if price is None else Decimal(money.text(price, PRICE_PLACES)),
            denominator=denominator,
            amount=amount,
            **(holder._asdict() | {"labels": dict(holder.labels)}),
        )
        for (key, category, holder, price, denominator), amount in amounts.items()
        if amount
    ]


def roll_up(cluster: str, start: datetime, end: datetime) -> None:
    """Roll up the hours of a cluster that begin in ``[start, end)``, whole ones; each is replaced.

    1. The marks that are there now are deleted at the end. What the ledger gets meanwhile adds a mark of its own.
    2. All is one transaction, in which nobody else rolls up these hours.
    3. A day is replaced too once all its hours are rolled up, and then a month once all of its are.
    """
    hours = list(hours_between(start, end))
    with transaction.atomic(), ExitStack() as locks:
        for hour in hours:
            locks.enter_context(advisory_lock("roll up hour", cluster, hour.isoformat()))
        marks = list(DirtyHour.objects.filter(cluster=cluster, hour__in=hours).order_by().values_list("pk", flat=True))
        ledger = read(cluster, start, end)
        found: list[AccountHour] = []
        owned: list[OwnedIdleHour] = []
        for hour in hours:
            of_hour = split(ledger, hour, hour + HOUR)
            found += rows(ledger, of_hour, hour)
            owned += owned_rows(cluster, ledger, of_hour, hour, hour + HOUR)
        for model in OF_AN_HOUR:
            model.objects.filter(cluster=cluster, start__in=hours).delete()
        AccountHour.objects.bulk_create(found, batch_size=1000)
        HourTotal.objects.bulk_create(_totals(found), batch_size=1000)
        OwnedIdleHour.objects.bulk_create(owned, batch_size=1000)
        capacity_costs.replace_hours(cluster, hours)
        now = clock.now()
        RolledUpHour.objects.bulk_create(
            (RolledUpHour(cluster_id=cluster, hour=hour, rolled_up_at=now) for hour in hours),
            update_conflicts=True,
            unique_fields=["hour", "cluster"],
            update_fields=["rolled_up_at"],
        )
        months = set()
        for day in sorted({day_of(hour) for hour in hours}):
            locks.enter_context(advisory_lock("roll up day", cluster, day.isoformat()))
            if _add_up(OF_A_DAY, cluster, day, day + DAY):
                months.add(month_of(day))
        for month in sorted(months):
            locks.enter_context(advisory_lock("roll up month", cluster, month.isoformat()))
            _add_up(OF_A_MONTH, cluster, month, next_month(month))
        DirtyHour.objects.filter(pk__in=marks).delete()


def dirty_hours(cluster: str, until: datetime) -> list[datetime]:
    """Return the hours of a cluster that are marked and begin before ``until``, oldest first."""
    marked = DirtyHour.objects.filter(cluster=cluster, hour__lt=until).order_by("hour")
    return list(marked.values_list("hour", flat=True).distinct())


def rolled_up_hours(cluster: str) -> Collection[datetime]:
    """Return the hours of a cluster that are rolled up, marked or not."""
    return set(RolledUpHour.objects.filter(cluster=cluster).order_by().values_list("hour", flat=True))


def _holder(ledger: Ledger, key: AccountKey, part: Part) -> Holder:
    """Return who uses a part. Of foreign use a key has the row first, and then which part of it this is."""
    if not part.key:
        return Holder(node=key.node)
    holder = ledger.holders["/".join(part.key.split("/")[:2])]
    return holder._replace(node=key.node) if key.node else holder


def _totals(found: Iterable[AccountHour]) -> Iterator[HourTotal]:
    amounts: dict[tuple[str, datetime, Sequence[object]], int] = defaultdict(int)
    for row in found:
        amounts[row.cluster_id, row.start, tuple(getattr(row, name) for name in SHARED)] += int(row.amount)
    for (cluster, start, names), amount in amounts.items():
        yield HourTotal(cluster_id=cluster, start=start, amount=amount, **dict(zip(SHARED, names, strict=True)))


def _add_up(models: AddedUp, cluster: str, start: datetime, end: datetime) -> bool:
    """Replace the totals of the day, or month, ``[start, end)`` if all its hours are rolled up; return whether."""
    if RolledUpHour.objects.filter(cluster=cluster, hour__gte=start, hour__lt=end).count() < (end - start) // HOUR:
        return False
    for model, of_parts, names in models:
        model.objects.filter(cluster=cluster, start=start).delete()
        within = of_parts.objects.filter(cluster=cluster, start__gte=start, start__lt=end).order_by()
        model.objects.bulk_create(
            (
                model(cluster_id=cluster, start=start, amount=values.pop("added_up"), **values)
                for values in within.values(*names).annotate(added_up=Sum("amount"))
            ),
            batch_size=1000,
        )
    return True
