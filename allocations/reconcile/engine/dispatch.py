"""From a due target to its reconciler. Safe to call twice, late, or never: the due row brings the next look."""

from datetime import datetime

from allocations.cluster.client import connect
from allocations.reconcile.allocation import reconcile_allocation
from allocations.reconcile.enforcement.lease_check import check_leases
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.platform import reconcile_platform
from allocations.reconcile.project import reconcile_project
from allocations.reconcile.recovery import reconcile_adoption
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


def reconcile(target: str) -> bool:
    """Look at one target if it is due; False if it was not, or someone else has it."""
    return workqueue.work(target, look)


def look(target: str) -> datetime | None:
    """Bring one target to what is wanted; returns when time alone makes the next look necessary."""
    cluster, kind, key = targets.parse(target)
    match kind:
        case "allocation":
            return reconcile_allocation(key, connect(cluster))
        case "project":
            return reconcile_project(key, connect(cluster))
        case "platform":
            return reconcile_platform(connect(cluster))
        case "inventory":
            return reconcile_inventory(cluster)
        case "adoption":
            return reconcile_adoption(cluster)
        case "leases":
            check_leases(connect(cluster))
            return None
    raise ValueError(f"nobody looks at {target}")
