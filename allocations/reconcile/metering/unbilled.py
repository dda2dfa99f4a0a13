"""Finds held or reserved slices without an open interval in the ledger.

Normally there are none, since one transaction writes mirror and ledger.
"""

from uuid import UUID

from allocations.domain.observed_facts import quota_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile import mirror
from allocations.reconcile.metering import job_reservations, ledger
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def allocations(cluster: str) -> set[UUID]:
    """Return the live allocations of a cluster, in any phase, with a charged slice that has no open interval; four
    queries.
    """
    snapshots = mirror.of_holds(cluster)
    claims = {one.allocation for snapshot in snapshots.values() for one in snapshot.of_kind("ResourceClaim")}
    quotas = (one for snapshot in snapshots.values() for one in snapshot.of_kind("ResourceQuota"))
    listed = {name for quota in quotas for name in quota_facts(quota).get("slices", ())}
    live = Allocation.objects.filter(project__cluster=cluster, ended_at=None)
    charged = live.filter(project__namespace__in=snapshots, name__in=claims | listed).order_by()
    return ledger.with_missing_intervals(spec_of_row.with_relations(charged), snapshots)


def jobs(cluster: str) -> set[tuple[str, str]]:
    """Return namespace and uid of queued Jobs in a cluster's projects whose reservation is not charged; two
    queries, or three if there are any.
    """
    differing = job_reservations.differing_jobs(cluster)
    if not differing:
        return set()
    namespaces = set(Project.objects.filter(cluster=cluster).values_list("namespace", flat=True))
    return {(namespace, job) for namespace, job in differing if namespace in namespaces}


def enqueue(cluster: str) -> None:
    """Enqueue the targets of a cluster whose controllers open the missing intervals."""
    inventory = [targets.inventory(cluster)] if jobs(cluster) else []
    workqueue.enqueue(*(targets.allocation(cluster, pk) for pk in allocations(cluster)), *inventory)
