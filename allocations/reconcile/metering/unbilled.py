"""What is held or reserved and has no open interval in the ledger: nothing, while one transaction writes both."""

from uuid import UUID

from allocations.lifecycle import spec_of_row
from allocations.reconcile import mirror
from allocations.reconcile.metering import job_reservations, ledger
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def allocations() -> set[UUID]:
    """Live allocations of which the mirror shows a slice that is to be charged and is not, in whatever phase they are;
    three queries."""
    views = mirror.of_holds()
    claims = {one.allocation for view in views.values() for one in view.of("ResourceClaim")}
    quotas = (one for view in views.values() for one in view.of("ResourceQuota"))
    listed = {name for quota in quotas for name in quota.facts.get("slices", ())}
    rows = spec_of_row.rows().filter(ended_at=None, project__namespace__in=views, name__in=claims | listed)
    return ledger.not_entered(rows, views)


def jobs() -> set[tuple[str, str]]:
    """Namespace and uid of projects' queued Jobs that are not charged for what they have reserved; four queries."""
    namespaces = set(Project.objects.values_list("namespace", flat=True))
    return {(namespace, job) for namespace, job in job_reservations.differing() if namespace in namespaces}


def mark() -> None:
    """Have those looked at who enter what is missing."""
    workqueue.mark(*(targets.allocation(pk) for pk in allocations()), *([targets.INVENTORY] if jobs() else []))
