"""Reads prices, costs of nodes, terms and fixed costs with the time in which each counts."""

from datetime import date, datetime
from typing import TypeVar, cast

from django.db.models import F, Model, Q, QuerySet, Window
from django.db.models.functions import Lead

from portal.tenants import access
from portal.tenants.models import User
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost

RowT = TypeVar("RowT", bound=Model)


def prices() -> QuerySet[Price]:
    """Return all prices, latest first, each with ``until``: when the next of its flavor or offering begins."""
    return _dated(Price.objects.select_related("flavor", "offering"), "flavor", "offering")


def node_costs(user: User) -> QuerySet[NodeCost]:
    """Return costs of nodes likewise, for platform staff."""
    rows = access.for_platform(user, NodeCost.objects.select_related("flavor", "node"))
    return _dated(rows, "flavor", "term", "node")


def node_terms(user: User) -> QuerySet[NodeTerm]:
    """Return terms of nodes likewise, for platform staff."""
    return _dated(access.for_platform(user, NodeTerm.objects.select_related("node")), "node")


def shared_costs(user: User) -> QuerySet[SharedCost]:
    """Return fixed costs likewise, for platform staff."""
    return _dated(access.for_platform(user, SharedCost.objects.all()), "name", start="month")


def not_replaced(rows: QuerySet[RowT], at: datetime | date) -> QuerySet[RowT]:
    """Return the rows that count at that time, and later ones."""
    return rows.filter(Q(until=None) | Q(until__gt=at))


def bills_that_count(user: User) -> QuerySet[Bill]:
    """Return the newest bill of each cluster and month, for platform staff."""
    rows = access.for_platform(user, Bill.objects.all())
    return rows.order_by("cluster_id", "month", "-pk").distinct("cluster_id", "month")


def _dated(rows: QuerySet[RowT], *subject: str, start: str = "valid_from") -> QuerySet[RowT]:
    following = Window(Lead(start), partition_by=[F(name) for name in subject], order_by=F(start).asc())
    return cast(QuerySet[RowT], rows.annotate(until=following).order_by(f"-{start}", "-pk"))
