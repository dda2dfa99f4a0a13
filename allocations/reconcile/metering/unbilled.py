"""What is held or reserved and has no open interval in the ledger: nothing, while one transaction writes both."""

from uuid import UUID

from allocations.lifecycle import spec_of_row
from allocations.reconcile import mirror
from allocations.reconcile.metering import job_reservations, ledger
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def allocations(cluster: str) -> set[UUID]:
    """Live allocations of a cluster of which the mirror shows a slice that is to be charged and is not, in whatever
    phase they are; three queries."""
    views = mirror.of_holds(cluster)
    claims = {one.allocation for view in views.values() for one in view.of("ResourceClaim")}
    quotas = (one for view in views.values() for one in view.of("ResourceQuota"))
    listed = {name for quota in quotas for name in quota.facts.get("slices", ())}
    live = spec_of_row.rows().filter(project__cluster=cluster, ended_at=None)
    return ledger.not_entered(live.filter(project__namespace__in=views, name__in=claims | listed), views)


def jobs(cluster: str) -> set[tuple[str, str]]:
    """Namespace and uid of queued Jobs of a cluster's projects that are not charged for what they have reserved; four
    queries."""
    namespaces = set(Project.objects.filter(cluster=cluster).values_list("namespace", flat=True))
    return {(namespace, job) for namespace, job in job_reservations.differing(cluster) if namespace in namespaces}


def mark(cluster: str) -> None:
    """Have those of a cluster looked at who enter what is missing."""
    inventory = [targets.inventory(cluster)] if jobs(cluster) else []
    workqueue.mark(*(targets.allocation(cluster, pk) for pk in allocations(cluster)), *inventory)
