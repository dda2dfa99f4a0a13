"""Calls the controller of a target. The work queue guarantees that each enqueued target is processed."""

from datetime import datetime

from allocations.cluster.client import connect
from allocations.reconcile.allocation import reconcile_allocation
from allocations.reconcile.changed_usage import reconcile_usage
from allocations.reconcile.enforcement.lease_check import check_leases
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.job_events import tell_flavor
from allocations.reconcile.platform import reconcile_platform
from allocations.reconcile.project import reconcile_project
from allocations.reconcile.recovery import reconcile_adoption
from portal.core.locks import lock_id
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def process(target: str) -> bool:
    """Reconcile a target if it is due; return False if it is not, or if another worker has it."""
    return workqueue.process(target, reconcile_target, _lock(target))


def _lock(target: str) -> int | None:
    """Return the number of the advisory lock that the target's controller takes, or None if it takes none."""
    cluster, kind, key = targets.parse(target)
    match kind:
        case "allocation" | "project":
            return lock_id(kind, key)
        case "platform" | "inventory" | "leases":
            return lock_id(f"{targets.of_cluster(cluster)}{kind}")
        case "usage":
            return lock_id(targets.inventory(cluster))
    return None


def reconcile_target(target: str) -> datetime | None:
    """Reconcile a target; return when to do so again if nothing changes, or None.

    Raises ValueError for an unknown kind, and what the controller raises.
    """
    cluster, kind, key = targets.parse(target)
    match kind:
        case "allocation":
            return reconcile_allocation(key, connect(cluster))
        case "job":
            tell_flavor(key, connect(cluster))
            return None
        case "project":
            return reconcile_project(key, connect(cluster))
        case "platform":
            return reconcile_platform(connect(cluster))
        case "inventory":
            return reconcile_inventory(cluster)
        case "usage":
            return reconcile_usage(cluster)
        case "adoption":
            return reconcile_adoption(cluster)
        case "leases":
            check_leases(connect(cluster))
            return None
    raise ValueError(f"no reconciler for {target}")
