"""Stores the proof of each hour of the ledger, and reads what was proved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from django.db.models import Count, Max, Min, Q, QuerySet

from portal.core import clock, money
from portal.tenants import access
from portal.tenants.access import Person
from quotas.metering import balance
from quotas.metering.balance import Failure, HourBalance
from quotas.metering.hours import HOUR, hour_of
from quotas.metering.models import BalanceProof
from quotas.metering.parts import Category

UNITS = 10**money.HOURS_PLACES
"""Units of the last decimal place in a GPU-hour."""


@dataclass(frozen=True)
class ProofSummary:
    """What was proved of a cluster: it is balanced from ``since`` to ``until``, but for ``missing`` hours that were not
    checked. ``failed`` is how many hours are not balanced.
    """

    cluster: str
    since: datetime
    until: datetime
    missing: int
    failed: int

    @property
    def is_balanced(self) -> bool:
        """Return whether the newest hour is balanced."""
        return self.since < self.until


def prove(cluster: str, hour: datetime, find_more: Callable[[], Sequence[Failure]] = lambda: ()) -> BalanceProof:
    """Check the hour and store the result; ``find_more`` returns failures that the ledger alone does not show.

    What fails is read once more, since a reading is several queries between which the ledger may change: the second
    reading decides, and of ``find_more`` what both have.
    """
    found, more = balance.of_hour(cluster, hour), find_more()
    if found.failures:
        found = balance.of_hour(cluster, hour)
    if more:
        more = [one for one in find_more() if one in more]
    failures = [*found.failures, *more]
    amounts = rounded(found)
    row, _ = BalanceProof.objects.update_or_create(
        cluster_id=cluster,
        hour=hour,
        defaults={
            "checked_at": clock.now(),
            "balanced": not failures,
            "accounts": found.accounts,
            "capacity_gpu_hours": _decimal(round(found.capacity * UNITS)),
            **{category.value: amount for category, amount in amounts.items()},
            "failures": [asdict(one) for one in failures[: BalanceProof.MAX_FAILURES]],
            "failure_count": len(failures),
        },
    )
    return row


def rounded(found: HourBalance) -> dict[Category, Decimal]:
    """Return the parts as decimals that add up to the rounded capacity, if the parts do (largest remainder)."""
    amounts = {category: amount * UNITS for category, amount in found.parts.items()}
    if sum(found.parts.values()) != found.capacity:
        return {category: _decimal(round(amount)) for category, amount in amounts.items()}
    units = {category: amount.__floor__() for category, amount in amounts.items()}
    left = round(found.capacity * UNITS) - sum(units.values())
    for category in sorted(units, key=lambda one: units[one] - amounts[one])[:left]:
        units[category] += 1
    return {category: _decimal(count) for category, count in units.items()}


def _decimal(units: int) -> Decimal:
    return Decimal(money.text(Fraction(units, UNITS), money.HOURS_PLACES))


def in_window(user: Person, start: datetime, end: datetime) -> QuerySet[BalanceProof]:
    """Return the proofs of the hours that begin in the window or contain its start, for platform staff.

    Raises Forbidden for everybody else.
    """
    return access.for_platform(user, BalanceProof.objects.filter(hour__gte=hour_of(start), hour__lt=end))


def proved(cluster: str) -> Mapping[datetime, bool]:
    """Return the hours of a cluster that were checked, each with whether it is balanced."""
    rows = BalanceProof.objects.filter(cluster=cluster).order_by()
    return dict(rows.values_list("hour", "balanced"))


def summaries() -> list[ProofSummary]:
    """Return what was proved of each cluster that has a proof; two queries."""
    failed, by_cluster = Q(balanced=False), BalanceProof.objects.order_by("cluster").values("cluster")
    rows = by_cluster.annotate(
        first=Min("hour"),
        newest=Max("hour"),
        newest_failed=Max("hour", filter=failed),
        count_failed=Count("pk", filter=failed),
    )
    spans = {row["cluster"]: row for row in rows}
    since = {
        cluster: row["newest_failed"] + HOUR if row["newest_failed"] else row["first"] for cluster, row in spans.items()
    }
    within = Q(pk=None)
    for cluster, hour in since.items():
        within |= Q(cluster=cluster, hour__gte=hour)
    counts = {row["cluster"]: row["n"] for row in by_cluster.filter(within).annotate(n=Count("pk"))}
    return [
        ProofSummary(
            cluster=cluster,
            since=since[cluster],
            until=row["newest"] + HOUR,
            missing=(row["newest"] + HOUR - since[cluster]) // HOUR - counts.get(cluster, 0),
            failed=row["count_failed"],
        )
        for cluster, row in spans.items()
    ]


def failing(count: int) -> list[BalanceProof]:
    """Return the newest hours that are not balanced, at most ``count``; one query."""
    return list(BalanceProof.objects.filter(balanced=False).order_by("-hour", "cluster")[:count])
