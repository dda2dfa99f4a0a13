"""Says what a price, a cost, a bill or a fixed cost would change: it is set, what follows is read, and all is undone.

So a preview refuses what the change itself would refuse, and its numbers are those that follow from it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction

from django.db import transaction

from portal.core import clock
from portal.tenants.models import User
from quotas.catalog.models import Kind, Offering
from quotas.costs import filters, rates, selectors
from quotas.costs.answers import answer
from quotas.costs.calendar import months_later
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.questions import IdleView, Question, asked_by
from quotas.costs.rating import Window

BILLED_MONTHS = 12
"""How many months that have ended are shown beside their bills."""


@dataclass(frozen=True)
class SlicePrice:
    """The price of a slice of an offering for an hour, before and after a change; None is no price."""

    offering: str
    before: Fraction | None
    after: Fraction | None


@dataclass(frozen=True)
class PriceEffect:
    """A price, the one before it, and what slices cost from its start on."""

    price: Price
    before: Price | None
    slices: Sequence[SlicePrice]


@dataclass(frozen=True)
class BillEffect:
    """A bill, the one that it replaces, and its difference from what the capacity of its cluster cost in its month:
    the part of holders and that of what nobody held. None if that is not known.

    ``billed_share`` is which part of the cost of the last BILLED_MONTHS months bills cover with it, from 0 to 1.
    """

    bill: Bill
    before: Bill | None
    of_holders: Decimal | None
    of_idle: Decimal | None
    billed_share: Decimal | None

    @property
    def capacity_cost(self) -> Decimal | None:
        """Return what the capacity of the cluster cost in the month by prices and costs of nodes."""
        if self.of_holders is None or self.of_idle is None:
            return None
        return self.bill.amount - self.of_holders - self.of_idle


def price_effect(set_price: Callable[[], Price]) -> PriceEffect:
    """Return what a price changes. Raises what ``set_price`` raises."""
    known = rates.read()
    with _undone():
        row = set_price()
        same = Price.objects.filter(flavor=row.flavor, offering=row.offering, valid_from__lt=row.valid_from)
        before = same.order_by("valid_from").last()
        sliced = Offering.objects.filter(flavor=row.flavor, hidden=False).exclude(kind=Kind.CLAIM).order_by("key")
        offerings = list((sliced.filter(pk=row.offering_id) if row.offering_id else sliced).select_related("flavor"))
        prices = [selectors.slice_prices(offerings, one, row.valid_from) for one in (known, rates.read())]
    return PriceEffect(row, before, [SlicePrice(one.key, *(of.get(one.key) for of in prices)) for one in offerings])


def node_cost_effect(set_cost: Callable[[], NodeCost]) -> tuple[NodeCost, NodeCost | None]:
    """Return a cost of nodes and the one before it. Raises what ``set_cost`` raises."""
    with _undone():
        row = set_cost()
        same = NodeCost.objects.filter(flavor=row.flavor, term=row.term, node=row.node, valid_from__lt=row.valid_from)
        return row, same.order_by("valid_from").last()


def node_term_effect(set_term: Callable[[], NodeTerm]) -> tuple[NodeTerm, NodeTerm | None]:
    """Return a term of a node and the one before it. Raises what ``set_term`` raises."""
    with _undone():
        row = set_term()
        same = NodeTerm.objects.filter(node=row.node, valid_from__lt=row.valid_from)
        return row, same.order_by("valid_from").last()


def bill_effect(user: User, enter: Callable[[], Bill]) -> BillEffect:
    """Return what a bill changes, as the costs of its cluster and month say. Raises what ``enter`` raises."""
    with _undone():
        row = enter()
        before = Bill.objects.filter(cluster=row.cluster, month=row.month, pk__lt=row.pk).order_by("pk").last()
        recent = asked_by(user, billed_months(clock.now()))
        where = filters.as_filter({"cluster": [row.cluster_id]})
        found = answer(replace(recent, window=month_window(row.month), where=where))
        share = _decimal(answer(recent).billed_share)
    if not found.rows:
        return BillEffect(row, before, None, None, share)
    [costs] = found.rows
    return BillEffect(row, before, _decimal(costs.adjustment), _decimal(costs.idle_adjustment), share)


def shared_cost_effect(set_cost: Callable[[], SharedCost]) -> tuple[SharedCost, SharedCost | None]:
    """Return a fixed cost and the one before it. Raises what ``set_cost`` raises."""
    with _undone():
        row = set_cost()
        return row, SharedCost.objects.filter(name=row.name, month__lt=row.month).order_by("month").last()


def month_window(month: date, count: int = 1) -> Window:
    """Return so many months, UTC, from that which begins with ``month``."""
    start, end = (datetime.combine(day, time(), UTC) for day in (month, months_later(month, count)))
    return Window(start, end)


def billed_months(now: datetime) -> Question:
    """Return the question what each cluster cost in the last BILLED_MONTHS months that have ended, UTC."""
    first = months_later(now.date().replace(day=1), -BILLED_MONTHS)
    return Question(month_window(first, BILLED_MONTHS), now, keys=("cluster",), idle=IdleView())


@contextmanager
def _undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _decimal(amount: str | None) -> Decimal | None:
    return None if amount is None else Decimal(amount)
