"""Monitors each cluster's etcd: its size as last read, its quota, and whether writes fail because it is full.

A worker reads the size every ``STORE_READ_S``. Failing writes are counted from failed work items, so the count returns
to zero once these succeed.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from allocations.cluster import etcd_size
from allocations.cluster.client import Client
from allocations.domain.etcd_usage import STORE_FULL, Store
from allocations.models import ClusterStore
from portal.core import clock
from portal.core.models import WorkItem
from portal.core.reading import Columns
from portal.workqueue import targets

MAX_MISSED_READS = 5
"""After so many missed reads the size counts as unknown."""


def read(client: Client) -> None:
    """Record the size of etcd's database, if the API server publishes it.

    Raises ClusterUnavailable, ClusterRefused.
    """
    size_bytes = etcd_size.database_bytes(client)
    if size_bytes is not None:
        record(client.cluster, size_bytes)


def record(cluster: str, size_bytes: int) -> None:
    ClusterStore.objects.update_or_create(
        cluster_id=cluster, defaults={"size_bytes": size_bytes, "read_at": clock.now()}
    )


def current(cluster: str) -> Store:
    """Return the cluster's etcd usage from the database; its size is None if unknown. Two queries."""
    oldest = clock.now() - timedelta(seconds=MAX_MISSED_READS * settings.STORE_READ_S)
    read = ClusterStore.objects.filter(cluster=cluster, read_at__gte=oldest)
    refused = _refused().filter(target__startswith=targets.of_cluster(cluster)).count()
    return Store(settings.ETCD_QUOTA_BYTES, read.values_list("size_bytes", flat=True).first(), refused)


def any_refused() -> Columns:
    """Return what to read to learn whether a target's last attempt failed because etcd has no space, in any cluster: it
    has one row or none.
    """
    return Columns(_refused()[:1], ("pk",))


def _refused() -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(attempts__gt=0, error__contains=STORE_FULL)
