"""Rates how much of its quota etcd uses, and names what an operator should do. Pure."""

from dataclasses import dataclass
from enum import StrEnum

HIGH, CRITICAL = 0.60, 0.85
"""Shares of the quota."""
SUGGESTED_MAX = 8 * 1024**3
"""The largest quota that etcd recommends (storage.MaxQuotaBytes)."""
STORE_FULL = "etcdserver: mvcc: database space exceeded"
"""etcd's error for every write after its alarm NOSPACE, which the API server passes on (rpctypes.ErrNoSpace)."""
FREE = (
    "compact and defragment etcd (etcdctl compact, etcdctl defrag), or raise its --quota-backend-bytes "
    "(8 GiB at most) and ETCD_QUOTA_BYTES with it"
)
DISARM = f"{FREE}; then take the alarm off: etcdctl alarm disarm"
LARGEST = "kubectl get resourcequotas -A shows which projects have most objects"


class Level(StrEnum):
    """How full etcd is."""

    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"
    FULL = "full"
    """etcd refuses every write in the cluster until an operator frees space and disarms its alarm."""


@dataclass(frozen=True)
class Store:
    """The size and quota of etcd's database.

    ``quota_bytes`` is configured by the operator. ``size_bytes`` is None if it is unknown. ``refused_writes`` is the
    number of targets that the portal cannot write at the moment because etcd has no space.
    """

    quota_bytes: int
    size_bytes: int | None = None
    refused_writes: int = 0

    @property
    def share(self) -> float:
        """The used fraction of the quota; 0 if the size is unknown."""
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
        """The used part of the quota, and whether writes are refused, in words."""
        full = "full, every write in the cluster is refused: " if self.level is Level.FULL else ""
        if self.size_bytes is None:
            return f"{full}size unknown"
        return f"{full}{amount(self.size_bytes)} of {amount(self.quota_bytes)} ({self.share:.0%})"


def amount(size_bytes: int) -> str:
    """Return the size in words: 26 MiB, 2.0 GiB."""
    gib = 1024**3
    return f"{size_bytes / gib:.1f} GiB" if size_bytes >= gib else f"{size_bytes / 1024**2:.0f} MiB"
