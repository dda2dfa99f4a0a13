"""Write operations on bills of clusters and on fixed costs that all share, for operators."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import transaction

from portal.audit.entries import audit
from portal.clusters import registry
from portal.clusters.models import Cluster
from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.actors import Actor
from portal.tenants.models import Team
from quotas.costs import amounts, currencies
from quotas.costs.models import Bill, SharedCost

PLACES = 4
MAX_NAME = 63


def month_of(text: str, field: str = "month") -> date:
    """Return the first day of a month such as 2026-11; raise Invalid for what is none."""
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError as error:
        raise Invalid({field: [f"{text[:40]!r} is not a valid month. Use one such as 2026-11."]}) from error


def enter_bill(
    actor: Actor, cluster: str, month: date, amount: Decimal | str, currency: str = "", source: str = ""
) -> Bill:
    """Enter the bill of a cluster for a month that has ended; another one for the same month replaces it.

    Raises Forbidden; Invalid for an unknown cluster, a month that has not ended, or another currency.
    """
    access.require(actor, "price.manage", None)
    with transaction.atomic(), advisory_lock("prices"):
        row = _cluster(cluster)
        if month >= clock.now().date().replace(day=1):
            raise Invalid({"month": ["Enter the bill of a month once it has ended."]})
        known = Bill.objects.filter(cluster=row, month=month).first()
        bill = Bill.objects.create(
            cluster=row,
            month=month,
            amount=amounts.amount(amount, "amount", places=PLACES),
            currency=currencies.check(currency),
            source=source,
            recorded_at=clock.now(),
        )
        target = f"{cluster} {month:%Y-%m}"
        audit(actor.username, "bill.enter", target, before=audit_values(known), after=audit_values(bill))
    return bill


def set_shared_cost(
    actor: Actor,
    name: str,
    month: date,
    amount: Decimal | str,
    split: str,
    *,
    cluster: str = "",
    teams: Sequence[str] = (),
    currency: str = "",
    source: str = "",
) -> SharedCost:
    """Set a fixed cost of each month from ``month`` on, the present one or later unless it is the first of its name.

    It is split evenly between ``teams``, by default all that there are now, or by what GPUs cost. Raises Forbidden,
    Invalid and Refused.
    """
    access.require(actor, "price.manage", None)
    with transaction.atomic(), advisory_lock("prices"):
        if not name.strip() or len(name) > MAX_NAME:
            raise Invalid({"name": [f"Give a name with at most {MAX_NAME} characters."]})
        if split not in SharedCost.Split.values:
            raise Invalid({"split": [f"Use one of {', '.join(SharedCost.Split.values)}."]})
        values = {
            "cluster": _cluster(cluster) if cluster else None,
            "amount": amounts.amount(amount, "amount", places=PLACES),
            "currency": currencies.check(currency),
            "split": split,
            "teams": _teams(teams) if split == SharedCost.Split.EVEN else [],
        }
        if teams and split != SharedCost.Split.EVEN:
            raise Invalid({"teams": ["Give teams only if it is split evenly."]})
        known = SharedCost.objects.filter(name=name, month=month).first()
        if known and any(getattr(known, field) != value for field, value in values.items()):
            hint = "Withdraw it while it has not begun, or set a later one."
            raise Refused("name_taken", f"{named(name)} has another cost from {month:%Y-%m} on.", hint)
        before = SharedCost.objects.filter(name=name, month__lt=month).first()
        if not known and before and month < clock.now().date().replace(day=1):
            raise Invalid({"month": ["A fixed cost cannot change what was charged. Give this month or a later one."]})
        row = known or SharedCost.objects.create(name=name, month=month, source=source, **values)
        if not known:
            audit(actor.username, "shared_cost.set", name, before=audit_values(before), after=audit_values(row))
    return row


def _cluster(slug: str) -> Cluster:
    row = Cluster.objects.filter(slug=slug).first()
    if row is None:
        raise Invalid(
            {"cluster": [f"There is no cluster {named(slug)}. Use one of {', '.join(sorted(registry.slugs()))}."]}
        )
    return row


def _teams(slugs: Sequence[str]) -> list[str]:
    known = set(Team.objects.values_list("slug", flat=True))
    if unknown := sorted(set(slugs) - known):
        raise Invalid({"teams": [f"There is no team {', '.join(map(named, unknown))}."]})
    if not known:
        raise Invalid({"teams": ["There is no team to split the cost between."]})
    return sorted(set(slugs) or known)


def audit_values(row: Bill | SharedCost | None) -> dict[str, Any] | None:
    """Return a bill or a fixed cost as the audit log has it."""
    if row is None:
        return None
    values: dict[str, Any] = {
        "month": f"{row.month:%Y-%m}",
        "amount": f"{row.amount.normalize():f}",
        "currency": row.currency,
    }
    if isinstance(row, SharedCost):
        values |= {"split": row.split, "teams": row.teams, "cluster": row.cluster_id}
    return {**values, "source": row.source}
