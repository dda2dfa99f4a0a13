"""Errors of the cluster: retryable ones, and permanent ones."""

from collections.abc import Mapping, Sequence

from portal.core.errors import Permanent, Retryable


class ClusterUnavailable(Retryable):
    """The API server did not answer, asked to retry (429, 5xx, conflict), or has not loaded the portal's policies."""


class ClusterStoreFull(ClusterUnavailable):
    """etcd has no space: it refuses every write in the cluster until an operator frees space and disarms its alarm."""

    reason = "cluster_store_full"
    detail = "The cluster's store (etcd) is full and refuses every write. What is held stays held."
    hint = "Tell an operator. The portal tries again by itself, and goes on once there is room."


class StoreRestored(Exception):
    """etcd was restored from a backup, so what was observed in the cluster after the backup may not be there."""


class ClusterRefused(Permanent):
    """The API server refused a request. ``status``, ``message`` and ``causes`` (meta/v1 StatusCause) are from it."""

    def __init__(self, status: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
