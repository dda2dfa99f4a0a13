"""What workers do for allocations: the controllers of their targets, and periodic tasks."""

import structlog
from celery import shared_task

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.reconcile import etcd_monitor
from allocations.reconcile.allocation import reconcile_allocation
from allocations.reconcile.changed_usage import reconcile_usage
from allocations.reconcile.enforcement.lease_check import check_leases
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.job_events import tell_flavor
from allocations.reconcile.metering import balance_proof, ledger_rollups
from allocations.reconcile.platform import reconcile_platform
from allocations.reconcile.project import reconcile_project
from allocations.reconcile.recovery import reconcile_adoption
from portal.clusters import registry
from portal.workqueue import controllers
from portal.workqueue.controllers import Controller

log = structlog.get_logger(__name__)


controllers.register(
    Controller("allocation", lambda target: reconcile_allocation(target.key, connect(target.cluster))),
    Controller("project", lambda target: reconcile_project(target.key, connect(target.cluster))),
    Controller("platform", lambda target: reconcile_platform(connect(target.cluster))),
    Controller("leases", lambda target: check_leases(connect(target.cluster))),
    Controller("inventory", lambda target: reconcile_inventory(target.cluster)),
    Controller("usage", lambda target: reconcile_usage(target.cluster), locks=False),
    Controller("adoption", lambda target: reconcile_adoption(target.cluster), locks=False),
    Controller("job", lambda target: tell_flavor(target.key, connect(target.cluster)), locks=False),
)


@shared_task(name="allocations.read_cluster_store")
def read_cluster_store() -> None:
    try:
        etcd_monitor.read(connect(registry.own()))
    except (ClusterRefused, ClusterUnavailable) as error:
        log.warning("cluster_store.unread", error=str(error))


@shared_task(name="allocations.prove_balance")
def prove_balance() -> None:
    ledger_rollups.roll_up_due()  # First: the proof compares the ledger with its roll-up.
    balance_proof.prove_due()


@shared_task(name="allocations.roll_up")
def roll_up() -> None:
    ledger_rollups.roll_up_due()
