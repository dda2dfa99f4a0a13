"""Facts about a cluster, the portal's requirements of it, and findings, as plain types. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    PROBLEM = "problem"
    ADVICE = "advice"
    """Does not stop the portal: something is not offered, or could not be read."""


class ReadError(str):
    """The API server's error message, in place of a fact that it refused."""


class Right(NamedTuple):
    """A permission in Kubernetes RBAC.

    ``resource`` may be ``plural/subresource``, or a path of the API server such as ``/metrics``. An empty ``namespace``
    means all namespaces, an empty ``name`` any object.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def is_path(self) -> bool:
        """Whether ``resource`` is a non-resource path of the API server, such as /metrics."""
        return self.resource.startswith("/")

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{f' {self.name}' if self.name else ''}{where}"


@dataclass(frozen=True)
class Guard:
    """An admission policy or its binding. ``rules`` is the number of its validations or mutations."""

    kind: str
    name: str
    rules: int = 0
    fails_closed: bool = True
    """A policy: whether errors in its evaluation deny the request. A binding: whether its action is Deny."""


@dataclass(frozen=True)
class FlowSchema:
    """A FlowSchema of API Priority and Fairness: the groups whose requests it matches in every namespace, and their
    priority level.
    """

    name: str
    level: str
    precedence: int
    groups: Collection[str]


@dataclass(frozen=True)
class ClusterFacts:
    """What was read from a cluster; a ``ReadError`` where the API server refused."""

    version: str | ReadError
    kueue: Document | ReadError
    """Kueue's configuration."""
    served: Collection[str] | ReadError
    """``group/version`` of every API, and ``group/version/plural`` of the kinds in the groups that differ between
    versions of Kubernetes.
    """
    features: Mapping[str, bool] = field(default_factory=dict)
    """Feature gate of the API server → whether it is on; empty if its metrics do not tell."""
    crds: Mapping[str, Collection[str] | ReadError] = field(default_factory=dict)
    """CustomResourceDefinition → versions served; empty if there is no such definition."""
    visibility: str = ""
    """Why Kueue's visibility API does not answer; "" if it does."""
    kueue_pod: Document | ReadError | None = None
    """The container of Kueue's pod: its image and arguments; None if there is no such pod."""
    webhook: Document | ReadError | None = None
    """The portal's MutatingWebhookConfiguration; None if there is none."""
    guards: Collection[Guard] | ReadError = ()
    priority_classes: Mapping[str, Document | ReadError | None] = field(default_factory=dict)
    """By name; None if it does not exist."""
    roles: Mapping[str, bool | ReadError] = field(default_factory=dict)
    flows: Collection[FlowSchema] | ReadError = ()
    projects: Collection[str] = ()
    """The namespaces of projects."""
    classes: Collection[str] | ReadError = ()
    uses_dra: bool = False
    rights: Mapping[Right, bool] = field(default_factory=dict)
    nodes: Mapping[str, str] | ReadError = field(default_factory=dict)
    """GPU node → the problem that keeps it, or part of it, from being offered; "" if there is none."""
    flavors: Collection[str] = ()
    store_bytes: int | ReadError | None = None
    """Size of etcd's database; None if the API server does not publish it."""
    stored_kib: Mapping[str, int] = field(default_factory=dict)
    """Namespace → the most space that the objects counted by its quota can use."""


@dataclass(frozen=True)
class Requirements:
    """What this release of the portal needs from a cluster."""

    guards: Collection[Guard]
    required_rights: Collection[Right]
    excessive_rights: Collection[Right]
    start_deadline_s: int = 120
    etcd_quota_bytes: int = 2 * 1024**3
    project_store_mib: int = 320


@dataclass(frozen=True)
class Finding:
    """The result of one check, with a fix for a problem."""

    check: str
    status: Status
    found: str
    fix: str = ""
