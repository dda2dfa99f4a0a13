"""What the cluster can answer, as two errors: worth trying again, or not."""

from collections.abc import Mapping, Sequence

from portal.core.errors import Permanent, Retryable


class ClusterUnavailable(Retryable):
    """The API server did not answer, asked for patience (429, 5xx, conflict), or cannot read our own policies yet."""


class ClusterStoreFull(ClusterUnavailable):
    """etcd has no space: it refuses every write in the cluster until an operator makes room and takes its alarm off."""

    reason = "cluster_store_full"
    detail = "The cluster's store (etcd) is full and refuses every write. What is held stays held."
    hint = "Tell an operator. The portal tries again by itself, and goes on once there is room."


class StoreRestored(Exception):
    """etcd came back from a backup: what was seen of the cluster since then has not happened, as far as etcd knows."""


class ClusterRefused(Permanent):
    """The API server answered no. ``status``, ``message`` and ``causes`` (meta/v1 StatusCause) are its own."""

    def __init__(self, status: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
