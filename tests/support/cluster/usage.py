"""What each allocation and queued Job reserves, holds and uses, from the API server's objects only. Pure.

Amounts are counters: of an allocation in SLICES, of a queued Job by resource name. Nothing here is code or data of the
portal, so that the portal can be measured against it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tests.support.cluster.api_client import ApiClient

Object = dict[str, Any]
SLICES = "slices"
ALLOCATION = "gpu-portal.io/allocation"
HOLDER = "gpu-portal.io/holder"
JOB_UID = "batch.kubernetes.io/controller-uid"
FINISHED = ("Succeeded", "Failed")
UNCOUNTED = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources of a Job that are reserved but not charged."""


class Holder(NamedTuple):
    """``name`` is an allocation's name or a Job's uid; with ``kind`` pod or claim, of an object that belongs to
    neither.
    """

    namespace: str
    kind: str
    name: str


@dataclass
class Usage:
    """The usage of one holder at one moment.

    ``reserved`` is Kueue's reservation. ``counted`` must not exceed it: GPUs of bound pods, without those terminating
    within their grace period; with DRA the allocated devices. ``used``: GPUs of tenants' bound pods, including
    terminating ones. ``held``: slices that the cluster shows as held. ``occupied``: slices of which any object is left.
    ``job``: the name of a Job.
    """

    reserved: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    held: int = 0
    occupied: int = 0
    job: str = ""


@dataclass(frozen=True)
class Snapshot:
    """All objects of the namespaces that show usage, read between two moments in seconds since the epoch."""

    requested_at: float
    answered_at: float
    pods: list[Object]
    claims: list[Object]
    quotas: list[Object]
    workloads: list[Object]


LISTS = {
    "pods": "/api/v1/pods",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "quotas": "/api/v1/resourcequotas",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2/workloads",
}


def take_snapshot(admin: ApiClient, namespaces: Iterable[str], now: Any) -> Snapshot:
    """Read a snapshot of the namespaces. ``now`` is the clock, for example time.time."""
    names, requested_at = set(namespaces), now()
    lists = {
        name: [item for item in admin.items(path) if item["metadata"]["namespace"] in names]
        for name, path in LISTS.items()
    }
    return Snapshot(requested_at, now(), **lists)


def read(seen: Snapshot) -> dict[Holder, Usage]:
    """Return the usage of every allocation and queued Job, and of objects that belong to neither."""
    found: dict[Holder, Usage] = defaultdict(Usage)
    for workload in seen.workloads:
        if holder := _holder_of_workload(workload):
            found[holder].reserved.update(_reserved(workload))
            found[holder].job = next((owner["name"] for owner in workload["metadata"].get("ownerReferences", ())), "")
    for pod in seen.pods:
        if is_bound(pod) and (gpus := gpus_of(pod)):
            holder = _holder_of_pod(pod)
            amounts = _in_units_of(holder, gpus)
            found[holder].used.update(amounts)
            found[holder].job = pod["metadata"].get("labels", {}).get("job-name", "")
            if not _is_within_grace(pod, seen.requested_at):
                found[holder].counted.update(amounts)
    _read_claims(seen, found)
    _read_hold_quotas(seen, found)
    return dict(found)


def is_bound(pod: Object) -> bool:
    """Return whether the pod occupies its node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in FINISHED


def gpus_of(pod: Object) -> Counter[str]:
    """Return the GPUs of device plugins in the pod's limits, by resource name."""
    together: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        together.update(gpus_of_container(container))
    for container in pod["spec"].get("initContainers", ()):
        together |= gpus_of_container(container)
    return +together


def gpus_of_container(container: Object) -> Counter[str]:
    limits = container.get("resources", {}).get("limits", {})
    return Counter({name: int(amount) for name, amount in limits.items() if name.startswith("nvidia.com/")})


def _is_within_grace(pod: Object, now: float) -> bool:
    """Return whether the pod is terminating within its grace period: deletionTimestamp is when that ends."""
    until = pod["metadata"].get("deletionTimestamp")
    return until is not None and datetime.fromisoformat(until).timestamp() >= now


def _in_units_of(holder: Holder, gpus: Counter[str]) -> Counter[str]:
    return Counter({SLICES: gpus.total()}) if holder.kind == "allocation" else gpus


def _holder_of_pod(pod: Object) -> Holder:
    metadata = pod["metadata"]
    labels, namespace = metadata.get("labels", {}), metadata["namespace"]
    if allocation := labels.get(ALLOCATION):
        return Holder(namespace, "allocation", allocation)
    owners = (o["uid"] for o in metadata.get("ownerReferences", ()) if o["kind"] == "Job" and o.get("controller"))
    if job := next(owners, labels.get(JOB_UID)):
        return Holder(namespace, "job", job)
    return Holder(namespace, "pod", metadata["name"])


def _holder_of_workload(workload: Object) -> Holder | None:
    metadata = workload["metadata"]
    labels, namespace = metadata.get("labels", {}), metadata["namespace"]
    if allocation := labels.get(ALLOCATION):
        return Holder(namespace, "allocation", allocation)
    owners = (owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner["kind"] == "Job")
    job = labels.get("kueue.x-k8s.io/job-uid") or next(owners, "")
    return Holder(namespace, "job", job) if job else None


def _reserved(workload: Object) -> Counter[str]:
    """Return Kueue's reservation: an allocation's slices, or by resource without what a Job's finished pods
    released.
    """
    status = workload.get("status", {})
    if any(c["type"] == "Finished" and c["status"] == "True" for c in status.get("conditions", ())):
        return Counter()
    assignments = status.get("admission", {}).get("podSetAssignments", ())
    if ALLOCATION in workload["metadata"].get("labels", {}):
        return Counter({SLICES: sum(assigned["count"] for assigned in assignments)})
    given_back = {pods["name"]: pods["count"] for pods in status.get("reclaimablePods", ())}
    total: Counter[str] = Counter()
    for assigned in assignments:
        pods = assigned["count"]
        left = pods - min(pods, given_back.get(assigned["name"], 0))
        for resource, amount in assigned.get("resourceUsage", {}).items():
            if resource not in UNCOUNTED:
                total[resource] += int(amount) * left // pods if pods else 0
    return +total


def _read_claims(seen: Snapshot, found: dict[Holder, Usage]) -> None:
    """Count the devices of claims: each once, however many pods share it; its holder pod alone does not use it."""
    pods = {pod["metadata"]["uid"]: pod for pod in seen.pods}
    claims: dict[Holder, list[tuple[Object, int]]] = defaultdict(list)
    for claim in seen.claims:
        holder = _holder_of_claim(claim, pods)
        if holder is not None:
            claims[holder].append((claim, _devices(claim)))
    for holder, parts in claims.items():
        usage, devices = found[holder], sum(count for _, count in parts)
        usage.counted[SLICES] += devices
        usage.occupied += devices
        usage.used[SLICES] += sum(count for claim, count in parts if _is_used(claim, pods))
        running = all(count and _has_running_holder(claim, seen.pods) for claim, count in parts)
        if running and devices == usage.reserved[SLICES]:
            usage.held += devices


def _holder_of_claim(claim: Object, pods: Mapping[str, Object]) -> Holder | None:
    """Return the holder of a claim: its pod's, if the scheduler created it for an extended resource; None if the pod's
    limits count it already.
    """
    metadata = claim["metadata"]
    if allocation := metadata.get("labels", {}).get(ALLOCATION):
        return Holder(metadata["namespace"], "allocation", allocation)
    owner = next((pods[one["uid"]] for one in metadata.get("ownerReferences", ()) if one["uid"] in pods), None)
    if owner:
        return None if gpus_of(owner) else _holder_of_pod(owner)
    return Holder(metadata["namespace"], "claim", metadata["name"]) if _devices(claim) else None


def _devices(claim: Object) -> int:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return sum(not result.get("adminAccess") for result in results)


def _is_used(claim: Object, pods: Mapping[str, Object]) -> bool:
    users = (pods.get(user["uid"]) for user in claim.get("status", {}).get("reservedFor", ()))
    return any(pod and is_bound(pod) and HOLDER not in pod["metadata"].get("labels", {}) for pod in users)


def _has_running_holder(claim: Object, pods: Iterable[Object]) -> bool:
    place = (claim["metadata"]["namespace"], f"{claim['metadata']['name']}-holder")
    return any(
        (pod["metadata"]["namespace"], pod["metadata"]["name"]) == place
        and pod.get("status", {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        for pod in pods
    )


def _read_hold_quotas(seen: Snapshot, found: dict[Holder, Usage]) -> None:
    """Count slices by device plugin: occupied while a hold quota lists them, held while its status shows them."""
    for holder, slices, is_shown in _listed(seen.quotas):
        found[holder].occupied += slices
        found[holder].held += slices if is_shown else 0


def _listed(quotas: Iterable[Object]) -> Iterator[tuple[Holder, int, bool]]:
    for quota in quotas:
        metadata = quota["metadata"]
        holds = json.loads(metadata.get("annotations", {}).get("gpu-portal.io/slices-of", "{}"))
        total: Counter[str] = Counter()
        for amounts in holds.values():
            total.update(amounts)
        hard = quota.get("status", {}).get("hard", {})
        for allocation, amounts in holds.items():
            is_shown = all(int(hard.get(f"requests.{name}", 0)) >= total[name] for name in amounts)
            yield Holder(metadata["namespace"], "allocation", allocation), sum(amounts.values()), is_shown
