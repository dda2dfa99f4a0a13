"""Finds what is held or reserved without an open interval in the ledger; normally nothing, since one transaction writes
both.
"""

from uuid import UUID

from django.db.models import Sum

from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.reconcile.metering import job_reservations
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.metering.models import UsageInterval

HELD = (Phase.ACTIVE, Phase.LEAVING)


def allocations() -> set[UUID]:
    """Allocations that are held and not charged for all their slices (a person's own claim: for any); three queries."""
    held = Allocation.objects.filter(phase__in=HELD, claim__isnull=True).values_list("pk", "count")
    due_for = dict(held.order_by()) | dict.fromkeys(_own_claims(), 1)
    rows = UsageInterval.objects.filter(end=None).order_by().values_list("holder_id")
    charged = dict(rows.annotate(n=Sum("count")))
    return {pk for pk, count in due_for.items() if charged.get(pk, 0) < count}


def _own_claims() -> list[UUID]:
    return list(Allocation.objects.filter(phase__in=HELD, claim__isnull=False).values_list("pk", flat=True))


def jobs() -> set[tuple[str, str]]:
    """Namespace and uid of projects' queued Jobs that are not charged for what they have reserved; four queries."""
    namespaces = set(Project.objects.values_list("namespace", flat=True))
    return {(namespace, job) for namespace, job in job_reservations.differing() if namespace in namespaces}


def enqueue() -> None:
    """Have those looked at who enter what is missing."""
    workqueue.enqueue(*(targets.allocation(pk) for pk in allocations()), *([targets.INVENTORY] if jobs() else []))
