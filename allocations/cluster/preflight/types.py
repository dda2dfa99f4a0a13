"""What a cluster says of itself, what the portal expects of it, and what is found. Plain values."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class Status(StrEnum):
    OK = "ok"
    PROBLEM = "problem"
    ADVICE = "advice"
    """Nothing that stops the portal: what is not offered, or could not be read."""


class Refused(str):
    """In the place of a fact: the API server's words when it was not given."""


class Right(NamedTuple):
    """``resource`` may be ``plural/subresource``, or a path of the API server such as ``/metrics``.

    Empty ``namespace`` is all of them, empty ``name`` any.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def is_path(self) -> bool:
        """Whether ``resource`` is a path of the API server that is no resource, such as /metrics."""
        return self.resource.startswith("/")

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{f' {self.name}' if self.name else ''}{where}"


@dataclass(frozen=True)
class Guard:
    """An admission policy or its binding, as shipped or as found; ``rules`` counts its validations or mutations."""

    kind: str
    name: str
    rules: int = 0
    fails_closed: bool = True
    """A policy that refuses when it cannot be evaluated; a binding that denies."""


@dataclass(frozen=True)
class Flow:
    """A FlowSchema of API Priority and Fairness for requests of resources: whose they are, and in which level."""

    name: str
    level: str
    precedence: int
    groups: Collection[str]


@dataclass(frozen=True)
class Gathered:
    """What a cluster says of itself. A ``Refused`` stands where it did not say."""

    version: str | Refused
    kueue: Document | Refused
    """Kueue's configuration."""
    served: Collection[str] | Refused
    """``group/version`` of every API, and ``group/version/plural`` of the guards' kinds."""
    crds: Mapping[str, Collection[str] | Refused] = field(default_factory=dict)
    """Name → versions served; none when there is no such definition."""
    visibility: str = ""
    """Why Kueue's visibility API does not answer; empty when it does."""
    guards: Collection[Guard] | Refused = ()
    priority_classes: Mapping[str, Document | Refused | None] = field(default_factory=dict)
    """By name; None where there is none."""
    roles: Mapping[str, bool | Refused] = field(default_factory=dict)
    flows: Collection[Flow] | Refused = ()
    classes: Collection[str] | Refused = ()
    uses_dra: bool = False
    rights: Mapping[Right, bool] = field(default_factory=dict)
    nodes: Mapping[str, str] | Refused = field(default_factory=dict)
    """GPU node → what keeps it, or a part of it, from being offered; empty when nothing does."""
    flavors: Collection[str] = ()
    store_bytes: int | Refused | None = None
    """Size of etcd's database; None when the API server does not tell it."""
    stored_kib: Mapping[str, int] = field(default_factory=dict)
    """Namespace → what the objects that its quota counts take at most."""


@dataclass(frozen=True)
class Expected:
    """What this release of the portal ships and needs."""

    guards: Collection[Guard]
    needed: Collection[Right]
    unwanted: Collection[Right]
    start_deadline_s: int = 120
    etcd_quota_bytes: int = 2 * 1024**3
    project_store_mib: int = 256


@dataclass(frozen=True)
class Finding:
    check: str
    status: Status
    found: str
    fix: str = ""
