"""Who waits in a ClusterQueue, in Kueue's own order (visibility.kueue.x-k8s.io, on demand)."""

from allocations.cluster.client import Client

PATIENCE_S = (0.5, 1.5)
MAX_ITEMS = 100_000
"""Kueue tells 1,000 unless it is asked for more (pkg/visibility/storage)."""

Pending = dict[tuple[str, str], int]
"""Position from 1 of each pending workload, by its namespace and name."""


def pending(client: Client, cluster_queue: str) -> Pending:
    """All that waits there, in one call.

    Raises ClusterUnavailable, soon, and ClusterRefused.
    """
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{cluster_queue}/pendingworkloads"
    items = client.json("GET", path, query={"limit": MAX_ITEMS}, timeout=PATIENCE_S).get("items") or []
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item.get("positionInClusterQueue", 0) + 1
        for item in items
    }
