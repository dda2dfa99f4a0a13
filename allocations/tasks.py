import structlog
from celery import shared_task

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.reconcile import etcd_monitor
from allocations.reconcile.engine import dispatch
from allocations.reconcile.metering import balance_proof, ledger_rollups
from portal.clusters import registry

log = structlog.get_logger(__name__)


@shared_task(name="allocations.reconcile")
def reconcile(target: str) -> None:
    dispatch.process(target)


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
