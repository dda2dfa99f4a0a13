"""What the cluster can answer, as two errors: worth trying again, or not."""

from collections.abc import Mapping, Sequence

from portal.core.errors import Permanent, Retryable


class ClusterUnavailable(Retryable):
    """The API server did not answer, asked for patience (429, 5xx, conflict), or cannot read our own policies yet."""


class ClusterRefused(Permanent):
    """The API server answered no. ``status``, ``message`` and ``causes`` (meta/v1 StatusCause) are its own."""

    def __init__(self, status: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
