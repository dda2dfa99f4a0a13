"""Withdraws prices, node costs, node terms and fixed costs that have not begun: nothing was charged by them.

What has begun stays: PostgreSQL refuses the application's role to delete it (`AppendOnly.may_be_withdrawn`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import transaction

from portal.audit.entries import audit
from portal.core import clock
from portal.core.errors import NotVisible, Refused
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.actors import Actor
from quotas.costs import bills, capacity_services, services
from quotas.costs.models import NodeCost, NodeTerm, Price, SharedCost

Dated = Price | NodeCost | NodeTerm | SharedCost


@dataclass(frozen=True)
class Kind:
    """A kind of dated row: its model, what people call it, and its values as the audit log has them."""

    model: type[Dated]
    noun: str
    action: str
    values: Callable[[Any], dict[str, Any] | None]


KINDS = {
    "price": Kind(Price, "price", "price.withdraw", services.audit_values),
    "node-cost": Kind(NodeCost, "node cost", "node_cost.withdraw", capacity_services.audit_values),
    "node-term": Kind(NodeTerm, "node term", "node_term.withdraw", capacity_services.audit_term),
    "fixed-cost": Kind(SharedCost, "fixed cost", "shared_cost.withdraw", bills.audit_values),
}


def begins(row: Dated) -> datetime | date:
    """Return when it begins: a time, or of a fixed cost the first day of a month (UTC)."""
    return row.month if isinstance(row, SharedCost) else row.valid_from


def subject(row: Dated) -> str:
    """Return what it is of, as the audit log names it."""
    match row:
        case Price():
            return row.offering.key if row.offering else row.flavor.name
        case NodeTerm():
            return row.node.name
        case SharedCost():
            return row.name
    return f"node {row.node}" if row.node else f"{row.flavor} {row.term}"


def to_withdraw(actor: Actor, kind: str, id_: int) -> Dated:
    """Return a scheduled row of a kind of `KINDS`. Raises Forbidden; NotVisible; Refused once it has begun."""
    access.require(actor, "price.manage", None)
    found = KINDS[kind]
    row = found.model._default_manager.filter(pk=id_).first()
    if row is None:
        raise NotVisible(f"The {found.noun} {id_}")
    now = clock.now()
    if begins(row) <= (now.date() if isinstance(row, SharedCost) else now):
        raise Refused(
            "wrong_phase",
            f"The {found.noun} of {subject(row)} began on {begins(row):%F}, so costs may have been computed by it.",
            f"Set another {found.noun} from now on; it replaces this one.",
        )
    return row


def withdraw(actor: Actor, kind: str, id_: int) -> Dated:
    """Delete a scheduled row and return it; what counts before it goes on. Raises as `to_withdraw`."""
    with transaction.atomic(), advisory_lock("prices"):
        row = to_withdraw(actor, kind, id_)
        audit(actor.username, KINDS[kind].action, subject(row), before=KINDS[kind].values(row))
        KINDS[kind].model._default_manager.filter(pk=id_).delete()
    return row
