"""Types for the facts of mirrored objects, which ``allocations.cluster.projectors`` return. Pure.

Facts are ``ObservedFacts`` where the kind of the object is not known. ``pod_facts`` and its like return them with their
type, so that mypy checks each key; they neither check nor copy. Of an object that is absent or observed without facts
they return {}: use ``get`` where that is possible. Fields that are ``NotRequired`` are left out if there is nothing to
tell, or were not recorded by an older release. Times are ISO 8601 with offset, "" if unknown.
"""

from collections.abc import Mapping
from typing import Any, NotRequired, Protocol, TypedDict, cast

ObservedFacts = Mapping[str, object]


class HasFacts(Protocol):
    """An ``ObservedObject``, an ``Observation`` or a row of the mirror."""

    @property
    def facts(self) -> ObservedFacts | None: ...


class Owner(TypedDict):
    """The controller of an object."""

    name: str
    uid: str


class Condition(TypedDict, total=False):
    """A status condition; {} if the object lacks it, else with all fields. ``at`` is its last transition."""

    status: str
    reason: str
    message: str
    at: str


Conditions = Mapping[str, Condition]


class NodeRequests(TypedDict):
    """What the scheduler reserves of a node for a pod, rounded up."""

    cpu_millicores: int
    memory_mib: int


# ``class`` is a keyword, so it can't be a field of a class statement.
_PriorityClass = TypedDict("_PriorityClass", {"class": NotRequired[str]})


class PodFacts(NodeRequests, _PriorityClass):
    """A pod. One without GPUs that only shares a GPU node has just phase, node, gpus and requests.

    ``class`` is its PriorityClass if that is one of holds.
    """

    phase: str
    node: str
    """"" until it is bound."""
    gpus: dict[str, int]
    """Requested from device plugins at one time, by resource."""
    holder: NotRequired[bool]
    """Whether it is a holder pod of the portal."""
    job: NotRequired[str]
    """The uid of its Job."""
    job_name: NotRequired[str]
    owner_kind: NotRequired[str]
    """The kind of its controller, such as DaemonSet."""
    scheduled_at: NotRequired[str]
    extended_claim: NotRequired[str]
    """The name of the ResourceClaim that the scheduler created for its extended resources."""
    finished_at: NotRequired[str]
    """When the last of its containers ended, if it has finished."""
    ends_by: NotRequired[str]
    """When its grace period is over, if it is terminating."""
    ready_at: NotRequired[str]
    unschedulable: NotRequired[str]
    """The scheduler's message if no node has room for it, else ""."""


class AllocatedDevice(TypedDict):
    """A device that is allocated to a claim."""

    request: str
    driver: str
    pool: str
    """The name of the node, with NVIDIA's driver."""
    device: str
    share: NotRequired[str]
    """The id of the claim's share of a device that serves several claims."""
    consumed: NotRequired[dict[str, str]]
    """The capacity that the share consumes; "shares" is in whole units."""


class ResourceClaimFacts(TypedDict):
    devices: list[AllocatedDevice]
    admin_devices: NotRequired[list[AllocatedDevice]]
    """Accessed by admin access; they belong to other claims."""
    allocated_at: str
    cards: list[str]
    """The UUID of the GPU that each request selects, "" if it selects none."""
    pod: NotRequired[str]
    """The uid of the pod that the scheduler created it for."""
    owner_kind: NotRequired[str]
    """The kind of its controller, such as Pod."""


class NodeAllocatable(TypedDict):
    """What a node has for pods; ``pods`` is their number."""

    cpu_millicores: int
    memory_mib: int
    pods: int


class NodeSize(TypedDict):
    """What a node has, with what the system has of it."""

    cpu_millicores: int
    memory_mib: int


class NodeFacts(TypedDict):
    labels: dict[str, str]
    """Those of nvidia.com/ and kubernetes.io/, and those that say the term by which the node is paid."""
    allocatable: dict[str, int]
    """GPUs by resource, as ``capacity``."""
    capacity: dict[str, int]
    gives: NotRequired[NodeAllocatable]
    size: NotRequired[NodeSize]
    taints: list[list[str]]
    """Key, value and effect of each."""
    ready: bool
    unschedulable: bool
    conditions: NotRequired[dict[str, Condition]]


class CounterSet(TypedDict):
    """Counters that the devices of a pool share, as quantities."""

    name: str
    counters: dict[str, str]


class ConsumedCounters(TypedDict):
    set: str
    counters: dict[str, str]


"""What a device consumes of the counter set of this name, as quantities."""


class PublishedDevice(TypedDict):
    """A device as its driver publishes it."""

    name: str
    attributes: dict[str, Any]
    """Texts, numbers and booleans."""
    versions: list[str]
    """The attributes that are versions."""
    capacity: dict[str, str]
    counters: list[ConsumedCounters]
    taints: list[list[str]]
    """Key, value and effect of each."""
    shareable: bool
    """Whether it serves several claims."""


class ResourceSliceFacts(TypedDict):
    driver: str
    node: str
    pool: str
    generation: int
    slice_count: int
    """The number of ResourceSlices of the pool's generation."""
    devices: list[PublishedDevice]
    shared_counters: list[CounterSet]


class DeviceClassFacts(TypedDict):
    extended_resource: str
    """The resource by which pods request its devices without a claim, "" if there is none."""
    selectors: list[str]
    """CEL expressions."""


class PodCounts(TypedDict, total=False):
    """How many pods a Job wants at once, and for how many it has quota: fewer by partial admission, 0 before."""

    requested: int
    admitted: int


class WorkloadFacts(TypedDict):
    """A lease, or the Workload of a tenant's Job, which alone has the fields from ``job`` on."""

    created_at: str
    conditions: dict[str, Condition]
    cluster_queue: str
    """The ClusterQueue whose quota is reserved, by its name in Kueue; "" if none is."""
    usage: dict[str, dict[str, int]]
    """What it uses of the queue until it finishes: flavor → resource → amount."""
    record: str
    """The lease's ``LeaseRecord`` as text."""
    job: NotRequired[Owner]
    priority: NotRequired[int]
    gpu_requests: NotRequired[dict[str, int]]
    """Requested by all its pods from device plugins, by resource."""
    pods: NotRequired[PodCounts]
    labels: NotRequired[dict[str, str]]
    """Those of its pods, without those that Kubernetes and Kueue add; absent if there are none."""


class CohortFacts(TypedDict):
    spec: Mapping[str, Any]
    overridden: NotRequired[bool]
    """Whether Kueue counts another quota than the spec's (Dynamic Quota Orchestration, from Kueue 0.20)."""


class ClusterQueueFacts(CohortFacts):
    """A ClusterQueue, with numbers of its workloads."""

    pending: int
    reserving: int
    admitted: int
    inactive: NotRequired[str]
    """Why it admits nothing."""


class NamespaceFacts(TypedDict):
    created_at: str
    remaining: NotRequired[list[str]]
    """What delays its deletion, as Kubernetes words it."""


class ResourceQuotaFacts(TypedDict):
    slices: dict[str, dict[str, int]]
    """The portal's annotation: allocation → slices by resource."""
    hard: dict[str, str]
    """The spec's amounts as fractions: 1500m is "3/2"."""
    shown: bool
    """Whether ``status.hard`` equals ``spec.hard``, so that the quota is enforced as written."""
    shown_at: NotRequired[str]
    """A time at which it was so already, in ISO 8601; "" if unknown."""


class GpuProjectFacts(TypedDict):
    created_at: str
    allocations: list[str]


def pod_facts(pod: HasFacts | None) -> PodFacts:
    return cast(PodFacts, _facts(pod))


def claim_facts(claim: HasFacts | None) -> ResourceClaimFacts:
    return cast(ResourceClaimFacts, _facts(claim))


def node_facts(node: HasFacts | None) -> NodeFacts:
    return cast(NodeFacts, _facts(node))


def slice_facts(resource_slice: HasFacts | None) -> ResourceSliceFacts:
    return cast(ResourceSliceFacts, _facts(resource_slice))


def device_class_facts(device_class: HasFacts | None) -> DeviceClassFacts:
    return cast(DeviceClassFacts, _facts(device_class))


def workload_facts(workload: HasFacts | None) -> WorkloadFacts:
    return cast(WorkloadFacts, _facts(workload))


def cluster_queue_facts(cluster_queue: HasFacts | None) -> ClusterQueueFacts:
    return cast(ClusterQueueFacts, _facts(cluster_queue))


def namespace_facts(namespace: HasFacts | None) -> NamespaceFacts:
    return cast(NamespaceFacts, _facts(namespace))


def quota_facts(quota: HasFacts | None) -> ResourceQuotaFacts:
    return cast(ResourceQuotaFacts, _facts(quota))


def gpu_project_facts(gpu_project: HasFacts | None) -> GpuProjectFacts:
    return cast(GpuProjectFacts, _facts(gpu_project))


def _facts(observed: HasFacts | None) -> ObservedFacts:
    return (observed.facts if observed is not None else None) or {}
