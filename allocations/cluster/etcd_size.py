"""Reads the size of etcd's database from the metrics of the API server.

The API server does not publish etcd's quota or alarms: the quota is a setting (``ETCD_QUOTA_BYTES``), and the alarm
shows when writes fail (``ClusterStoreFull``).
"""

from collections.abc import Iterable

from allocations.cluster.client import Client

PATH = "/metrics"
METRIC = "apiserver_storage_size_bytes"
"""A stable metric of the API server, with one sample for each etcd cluster, such as that of events."""


def database_bytes(client: Client) -> int | None:
    """Return the size in bytes of the largest of the API server's databases; None if it publishes none.

    Raises ClusterUnavailable, ClusterRefused.
    """
    return largest(client.lines(PATH))


def largest(lines: Iterable[bytes]) -> int | None:
    """Return the largest sample of the metric in Prometheus text format; None if there is none."""
    sizes = [
        int(float(line.rsplit(maxsplit=1)[-1]))
        for line in lines
        if line.startswith((f"{METRIC}{{".encode(), f"{METRIC} ".encode()))
    ]
    return max(sizes, default=None)
