"""Frozen types of the pure packages: what was requested, and what is observed in the cluster."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from allocations.domain.allocation_spec import AllocationSpec
from allocations.domain.backend_capabilities import CAPABILITIES
from quotas.catalog.node_shares import NodeShare

Manifest = dict[str, Any]
FINISHED = frozenset({"Succeeded", "Failed"})
"""Phases of pods whose containers have ended for good."""


def has_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a pod of these facts has nothing any more of what it asked for."""
    return pod.get("phase") in FINISHED


def is_on_node(pod: Mapping[str, Any]) -> bool:
    """Whether a pod of these facts has what it asks for of a node now: it is bound, and has not finished."""
    return bool(pod.get("node")) and not has_finished(pod)


class Ref(NamedTuple):
    kind: str
    namespace: str
    name: str

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> "Ref":
        metadata = manifest["metadata"]
        return cls(manifest["kind"], metadata.get("namespace", ""), metadata["name"])


@dataclass(frozen=True)
class ObservedObject:
    """One object as the mirror has it. ``facts`` are the projected fields of ``allocations.cluster.kinds``."""

    ref: Ref
    uid: str
    resource_version: int
    digest: str = ""
    allocation: str = ""
    deleting: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Applied:
    """One object as server-side apply last answered it."""

    ref: Ref
    uid: str
    resource_version: int
    intent: str
    digest: str


class Snapshot:
    """Objects of the mirror, and the revision up to which each kind is complete.

    All resource versions come from one etcd, so they compare across kinds (Kubernetes 1.35 and later promise that they
    compare within a kind, which is all that is used here).
    """

    def __init__(self, seen: Iterable[ObservedObject] = (), synced: Mapping[str, int] | None = None) -> None:
        self._seen = {s.ref: s for s in seen}
        self._synced = dict(synced or {})
        self._of: dict[tuple[str, str | None], list[ObservedObject]] = {}
        for one in self._seen.values():
            self._of.setdefault((one.ref.kind, None), []).append(one)
            self._of.setdefault((one.ref.kind, one.allocation), []).append(one)

    def get(self, ref: Ref) -> ObservedObject | None:
        return self._seen.get(ref)

    def __iter__(self) -> Iterator[ObservedObject]:
        return iter(self._seen.values())

    def of_kind(self, kind: str, allocation: str | None = None) -> list[ObservedObject]:
        """All of a kind, or those of one allocation (``""``: of none)."""
        return self._of.get((kind, allocation), [])

    def with_form(self, ref: Ref, form: ObservedObject | None) -> "Snapshot":
        """This view, but for one object: as ``form`` has it, or without it."""
        others = [seen for seen in self if seen.ref != ref]
        return Snapshot([*others, form] if form else others, self._synced)

    def is_gone(self, applied: Applied) -> bool:
        """Whether the object is known to be absent (not merely not yet seen) since it was applied."""
        return self.get(applied.ref) is None and self._synced.get(applied.ref.kind, 0) >= applied.resource_version


@dataclass(frozen=True, kw_only=True)
class ResolvedSpec(AllocationSpec):
    """An allocation's spec with what its offering, project and affinity add, from which its objects are built.

    Quantities are whole numbers of the named resource, per slice.
    """

    id: str
    team: str
    department: str
    namespace: str
    kind: str
    flavor: str
    path: str
    requests: Mapping[str, int]
    resource: str
    device_class: str
    selectors: tuple[str, ...]
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    record: str
    """The whole request as JSON, for the lease's annotation: a lease without a row becomes a row again."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """What one slice takes of a device that serves several claims, e.g. {"shares": "1"}."""
    cards: tuple[str, ...] = ()
    """UUIDs of the cards that its slices are steered to, in their order; empty when the scheduler chooses."""
    clique: str = ""
    """The NVLink clique on whose nodes it is held, where the request wants one."""
    number: int | None = 0
    """Which of the live allocations of its namespace it is: names its hold quota and the PriorityClass of its pods.
    None before it starts."""
    node_share: NodeShare = field(default_factory=NodeShare)
    """CPU, memory and pods that go with all its slices; false where no node tells what it has."""

    @property
    def is_shared(self) -> bool:
        """Whether one slice is all that a container has use for, since more of them are of the same card."""
        return self.kind == "shared"

    @property
    def claim_spec(self) -> Mapping[str, Any] | None:
        """The spec of its own DRA request, for offerings of kind claim."""
        return self.claim.built.spec if self.claim and self.claim.built else None

    @property
    def slice_share(self) -> NodeShare:
        """What goes with each of its slices."""
        return self.node_share.part(Fraction(1, self.slices))

    @property
    def pod_share(self) -> NodeShare:
        """What goes with what one pod gets of itself: a slice where each is a claim of its own, else all of them."""
        is_spread = self.constraints.spread and CAPABILITIES[self.path].spreads_on_request
        return self.slice_share if is_spread else self.node_share


@dataclass(frozen=True)
class Slice:
    """One held slot: a device by DRA or a share of one, or a count of a device plugin's resource."""

    slot: str
    count: int = 1
    node: str = ""
    device: str = ""
    consumed: Mapping[str, str] = field(default_factory=dict)
    """What is taken of a device that serves several, by capacity."""
    identity: str = ""
    """What makes this hold of the slot the one it is (claim, holder or quota uid): equal for every sighting of it."""
    since: datetime | None = None
    """When the cluster says it began (1 s grain), for holds whose beginning nobody watched."""
    evidence: Ref | None = None
    is_charged: bool = True
    """Whether it is the allocation's own: not when it is only looked at, by admin access."""
