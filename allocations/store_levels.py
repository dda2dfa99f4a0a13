"""How full etcd is, against its quota, and what an operator should do. Pure."""

from dataclasses import dataclass
from enum import StrEnum

HIGH, CRITICAL = 0.60, 0.85
"""Shares of the quota."""
SUGGESTED_MAX = 8 * 1024**3
"""etcd suggests no larger quota (storage.MaxQuotaBytes)."""
STORE_FULL = "etcdserver: mvcc: database space exceeded"
"""etcd's answer to each write once its alarm NOSPACE is raised; the API server hands it on (rpctypes.ErrNoSpace)."""
FREE = (
    "compact and defragment etcd (etcdctl compact, etcdctl defrag), or raise its --quota-backend-bytes "
    "(8 GiB at most) and ETCD_QUOTA_BYTES with it"
)
DISARM = f"{FREE}; then take the alarm off: etcdctl alarm disarm"
LARGEST = "kubectl get resourcequotas -A shows which projects have most objects"


class Level(StrEnum):
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"
    FULL = "full"
    """etcd refuses every write in the cluster, until somebody makes room and takes its alarm off."""


@dataclass(frozen=True)
class Store:
    """``size_bytes``: etcd's database file, None where nobody knows. ``quota_bytes``: as the operator states it.

    ``refused_writes``: how many targets the portal cannot write just now because etcd has no space.
    """

    quota_bytes: int
    size_bytes: int | None = None
    refused_writes: int = 0

    @property
    def share(self) -> float:
        return (self.size_bytes or 0) / max(1, self.quota_bytes)

    @property
    def level(self) -> Level:
        if self.refused_writes or self.share >= 1:
            return Level.FULL
        if self.share >= CRITICAL:
            return Level.CRITICAL
        return Level.HIGH if self.share >= HIGH else Level.NORMAL

    @property
    def summary(self) -> str:
        """Say how much of the quota is in use, and whether writes are refused."""
        full = "full, every write in the cluster is refused: " if self.level is Level.FULL else ""
        if self.size_bytes is None:
            return f"{full}size unknown"
        return f"{full}{amount(self.size_bytes)} of {amount(self.quota_bytes)} ({self.share:.0%})"


def amount(size_bytes: int) -> str:
    """Return the size as people read it: 26 MiB, 2.0 GiB."""
    gib = 1024**3
    return f"{size_bytes / gib:.1f} GiB" if size_bytes >= gib else f"{size_bytes / 1024**2:.0f} MiB"
