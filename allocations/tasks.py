import structlog
from celery import shared_task

from allocations import cluster_store
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.reconcile.work import reconcile as reconcile_target

log = structlog.get_logger(__name__)


@shared_task(name="allocations.reconcile")
def reconcile(target: str) -> None:
    reconcile_target(target)


@shared_task(name="allocations.read_cluster_store")
def read_cluster_store() -> None:
    try:
        cluster_store.read(connect())
    except (ClusterRefused, ClusterUnavailable) as error:
        log.warning("cluster_store.unread", error=str(error))
