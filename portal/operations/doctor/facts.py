"""What is known of the running portal, as plain types. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from allocations.domain.etcd_usage import Store


@dataclass(frozen=True)
class Thresholds:
    """The settings that decide what is late, in seconds."""

    stale_s: float = 60
    seal_s: float = 60
    mirror_s: float = 30


@dataclass(frozen=True)
class RedisFacts:
    """``error`` is "" if Redis answers. ``waiting`` is how many messages no worker has taken."""

    error: str = ""
    eviction: str = "noeviction"
    """maxmemory-policy; "" if Redis does not tell it."""
    waiting: int = 0


@dataclass(frozen=True)
class FailingTarget:
    """A target whose last reconcile failed, ``attempts`` times in a row."""

    target: str
    attempts: int
    error: str


@dataclass(frozen=True)
class Stuck:
    """An allocation or a namespace that should have reached another state by now."""

    name: str
    state: str
    since: datetime
    message: str = ""


@dataclass(frozen=True)
class Proof:
    """What was proved of a ledger up to ``until``: how many hours are not balanced, and how many were not checked."""

    until: datetime
    failed: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Work:
    """How many targets are due, for how many seconds the longest of them, how many fail, and the first of those that
    failed most often.
    """

    due: int = 0
    lag_s: float = 0.0
    failing: int = 0
    first_failing: Sequence[FailingTarget] = ()


@dataclass(frozen=True)
class ClusterFacts:
    """What is known of one cluster; ``refused`` is why its API server refused a request now, "" if it was not asked or
    answered.
    """

    name: str
    mirrored_at: datetime | None
    store: Store
    refused: str = ""
    skew_s: float | None = None
    uncharged: int = 0
    """Allocations and queued Jobs whose slices the ledger has no open interval for."""
    proof: Proof | None = None


@dataclass(frozen=True)
class DatabaseFacts:
    """What the database tells of itself and of the portal."""

    missing_migrations: int = 0
    changeable: Sequence[str] = ()
    """Append-only tables whose rows the portal's role could change."""
    connections: int = 1
    max_connections: int = 100
    ahead_s: float = 0.0
    """How far its clock is ahead of this machine's."""
    heartbeats: Mapping[str, datetime | None] = field(default_factory=dict)
    """When each process last worked; None if it never has."""
    work: Work = Work()
    clusters: Sequence[ClusterFacts] = ()
    stuck: Sequence[Stuck] = ()
    over_lease: int = 0
    unsealed_since: datetime | None = None
    """When the oldest entry of the audit log was written that is not in the chain yet."""


@dataclass(frozen=True)
class Facts:
    """The state of the portal at ``now``; ``database`` is an error message where it does not answer."""

    now: datetime
    database: DatabaseFacts | str
    redis: RedisFacts
    thresholds: Thresholds = Thresholds()
