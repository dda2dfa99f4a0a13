"""Types for what was requested, and for what is observed in the cluster. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from allocations.domain.allocation_spec import AllocationSpec, LeaseRecord
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.observed_facts import ObservedFacts, PodFacts, pod_facts
from quotas.catalog.node_shares import NodeShare

Manifest = dict[str, Any]
FINISHED = frozenset({"Succeeded", "Failed"})
"""Phases of pods whose containers have terminated and will not restart."""


def has_finished(pod: PodFacts) -> bool:
    """Return whether a pod with these facts has released its resources."""
    return pod.get("phase") in FINISHED


def is_on_node(pod: PodFacts) -> bool:
    """Return whether a pod with these facts uses resources of a node: it is bound and has not finished."""
    return bool(pod.get("node")) and not has_finished(pod)


class Ref(NamedTuple):
    """A reference to an object of a cluster; ``namespace`` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> "Ref":
        """Return the reference to the manifest's object."""
        metadata = manifest["metadata"]
        return cls(manifest["kind"], metadata.get("namespace", ""), metadata["name"])


@dataclass(frozen=True)
class ObservedObject:
    """An object as last observed. ``facts`` are the fields of its kind in ``observed_facts``."""

    ref: Ref
    uid: str
    resource_version: int
    digest: str = ""
    allocation: str = ""
    deleting: bool = False
    facts: ObservedFacts = field(default_factory=dict)


@dataclass(frozen=True)
class Applied:
    """An object as the API server last returned it from server-side apply; ``intent`` is a digest of the manifest."""

    ref: Ref
    uid: str
    resource_version: int
    intent: str
    digest: str


class Snapshot:
    """The observed objects of a cluster, and the revision up to which each kind is complete.

    Resource versions are compared within a kind only, which Kubernetes 1.35 and later guarantee.
    """

    def __init__(self, objects: Iterable[ObservedObject] = (), synced: Mapping[str, int] | None = None) -> None:
        self._objects = {each.ref: each for each in objects}
        self._synced = dict(synced or {})
        self._by_kind: dict[tuple[str, str | None], list[ObservedObject]] = {}
        for each in self._objects.values():
            self._by_kind.setdefault((each.ref.kind, None), []).append(each)
            self._by_kind.setdefault((each.ref.kind, each.allocation), []).append(each)

    def get(self, ref: Ref) -> ObservedObject | None:
        """Return the object; None if it is not observed."""
        return self._objects.get(ref)

    def __iter__(self) -> Iterator[ObservedObject]:
        return iter(self._objects.values())

    def of_kind(self, kind: str, allocation: str | None = None) -> list[ObservedObject]:
        """Return all objects of a kind, or those of one allocation; "" for objects of no allocation."""
        return self._by_kind.get((kind, allocation), [])

    @cached_property
    def pods_by_class(self) -> Mapping[str, Sequence[ObservedObject]]:
        """The pods of each PriorityClass of holds, and under "" all others."""
        found: dict[str, list[ObservedObject]] = {}
        for pod in self.of_kind("Pod"):
            found.setdefault(pod_facts(pod).get("class", ""), []).append(pod)
        return found

    def with_object(self, ref: Ref, replacement: ObservedObject | None) -> "Snapshot":
        """Return the snapshot with one object replaced, or removed if ``replacement`` is None."""
        others = [each for each in self if each.ref != ref]
        return Snapshot([*others, replacement] if replacement else others, self._synced)

    def filtered(self, condition: Callable[[ObservedObject], bool]) -> "Snapshot":
        """Return the snapshot with the objects that meet the condition."""
        return Snapshot(filter(condition, self), self._synced)

    def is_gone(self, applied: Applied) -> bool:
        """Return whether the object was deleted after it was applied, rather than not observed yet."""
        return self.get(applied.ref) is None and self._synced.get(applied.ref.kind, 0) >= applied.resource_version

    def is_observed_since(self, ref: Ref, resource_version: int) -> bool:
        """Return whether the observed form of the object includes its changes up to this revision.

        Changes of fields that the portal does not read are not recorded with the object.
        """
        observed = self.get(ref)
        recorded = observed.resource_version if observed else 0
        return max(recorded, self._synced.get(ref.kind, 0)) >= resource_version


@dataclass(frozen=True, kw_only=True)
class ResolvedSpec(AllocationSpec):
    """An allocation's spec with the fields of its offering, project and affinity, from which its objects are built.

    Quantities are integers of the named resource, per slice.
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
    lease_record: LeaseRecord
    """For the lease's annotation, which needs it as text; that takes longer than all else here, so only there."""
    capacity: Mapping[str, str] = field(default_factory=dict)
    """The capacity that one slice requests of a device that serves several claims, e.g. {"shares": "1"}."""
    gpu_uuids: tuple[str, ...] = ()
    """UUIDs of the GPUs that its slices select, in order; empty if the scheduler chooses."""
    clique: str = ""
    """The NVLink clique on whose nodes it is held, if the request requires one clique."""
    number: int | None = 0
    """Its number among the live allocations of its namespace, which names its hold quota and PriorityClass. None before
    it starts."""
    node_share: NodeShare = field(default_factory=NodeShare)
    """The CPU, memory and pods that come with all its slices; false if no node has reported its capacity."""

    @property
    def is_shared(self) -> bool:
        """Whether slices are shares of a GPU, so that a container gains nothing from more than one."""
        return self.kind == "shared"

    @property
    def claim_spec(self) -> Mapping[str, Any] | None:
        """The spec of its custom claim, for offerings of kind claim; else None."""
        return self.claim.built.spec if self.claim and self.claim.built else None

    @property
    def slice_share(self) -> NodeShare:
        """The CPU, memory and pods that come with one slice."""
        return self.node_share.part(Fraction(1, self.slices))

    @property
    def pod_slices(self) -> int:
        """How many slices a pod gets that does not say (``policies/give-slices.yaml``): one if each slice has its own
        claim, and one of a counted resource whose slices are shares of a GPU; else all.
        """
        backend = CAPABILITIES[self.path]
        gets_one = (self.constraints.spread and backend.spreads_on_request) or (
            self.is_shared and not backend.names_devices
        )
        return 1 if gets_one else self.slices

    @property
    def pod_share(self) -> NodeShare:
        """The CPU, memory and pods that come with the slices of such a pod."""
        return self.node_share.part(Fraction(self.pod_slices, self.slices))


@dataclass(frozen=True)
class Slice:
    """A held slot: a device or a share of it with DRA, or a count of a device plugin's resource."""

    slot: str
    count: int = 1
    node: str = ""
    device: str = ""
    consumed: Mapping[str, str] = field(default_factory=dict)
    """The consumed capacity of a device that serves several claims."""
    identity: str = ""
    """Identifies this hold of the slot by uids of claim and holder, or of the quota; equal in every observation."""
    since: datetime | None = None
    """When it began according to the cluster (1 s resolution), used if the watch did not observe the beginning."""
    confirmed_at: datetime | None = None
    """A time at which it was held already, according to the cluster, where ``since`` is only the earliest possible."""
    evidence: Ref | None = None
    is_charged: bool = True
    """Whether the allocation is charged for it; not with admin access."""
