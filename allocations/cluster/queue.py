"""Where a lease stands in its team's queue, from Kueue itself (visibility.kueue.x-k8s.io, on demand)."""

from allocations.cluster.client import Client

PATIENCE_S = (0.5, 1.5)


def position(client: Client, cluster_queue: str, namespace: str, lease: str) -> tuple[int, int] | None:
    """(position from 1, of how many) of a pending lease; None when Kueue has it not pending.

    Raises ClusterUnavailable, soon, and ClusterRefused.
    """
    path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{cluster_queue}/pendingworkloads"
    items = client.json("GET", path, timeout=PATIENCE_S).get("items") or []
    for item in items:
        metadata = item["metadata"]
        if (metadata.get("namespace"), metadata["name"]) == (namespace, lease):
            return int(item.get("positionInClusterQueue", 0)) + 1, len(items)
    return None
