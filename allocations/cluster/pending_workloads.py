"""Reads the pending workloads of a ClusterQueue in Kueue's order (visibility.kueue.x-k8s.io, on demand)."""

from allocations.cluster.client import Client

TIMEOUT_S = (0.5, 1.5)
"""To connect and to read: short, since a page waits for the answer."""
MAX_ITEMS = 100_000
"""Kueue returns 1,000 by default (pkg/visibility/storage)."""

Pending = dict[tuple[str, str], int]
"""Position from 1 of each pending workload, by its namespace and name."""


def pending(client: Client, cluster_queue: str) -> Pending:
    """Return the positions of all pending workloads, in one request.

    Raises ClusterUnavailable after a short timeout, and ClusterRefused.
    """
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{cluster_queue}/pendingworkloads"
    items = client.json("GET", path, query={"limit": MAX_ITEMS}, timeout=TIMEOUT_S).get("items") or []
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item.get("positionInClusterQueue", 0) + 1
        for item in items
    }
