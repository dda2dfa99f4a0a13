"""What is held or reserved and has no open interval in the ledger: nothing, while one transaction writes both."""

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


def allocations(cluster: str) -> set[UUID]:
    """Allocations of a cluster that are held and not charged for all their slices (a person's own claim: for any).
    Three queries."""
    held = Allocation.objects.filter(project__cluster=cluster, phase__in=HELD).order_by()
    own_claims = held.filter(claim__isnull=False).values_list("pk", flat=True)
    due_for = dict(held.filter(claim__isnull=True).values_list("pk", "count")) | dict.fromkeys(own_claims, 1)
    rows = UsageInterval.objects.filter(cluster=cluster, end=None).order_by().values_list("allocation")
    charged = dict(rows.annotate(n=Sum("count")))
    return {pk for pk, count in due_for.items() if charged.get(pk, 0) < count}


def jobs(cluster: str) -> set[tuple[str, str]]:
    """Namespace and uid of queued Jobs of a cluster's projects that are not charged for what they have reserved; four
    queries."""
    namespaces = set(Project.objects.filter(cluster=cluster).values_list("namespace", flat=True))
    return {(namespace, job) for namespace, job in job_reservations.differing(cluster) if namespace in namespaces}


def mark(cluster: str) -> None:
    """Have those of a cluster looked at who enter what is missing."""
    inventory = [targets.inventory(cluster)] if jobs(cluster) else []
    workqueue.mark(*(targets.allocation(cluster, pk) for pk in allocations(cluster)), *inventory)
