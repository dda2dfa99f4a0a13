"""Invariants that must hold within WITHIN_S of any operation, checked on the API server's objects and the ledger only.

1. What is used is at most what is reserved, for each allocation and queued Job, and nothing else has a GPU.
2. What is reserved and held is charged exactly; what pods use beyond it is charged until they are gone.

A finding is one sentence.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from tests.support.cluster import ledger, usage
from tests.support.cluster.api_client import NAMESPACED, ApiClient, Object
from tests.support.cluster.usage import Holder, Snapshot, Usage

WITHIN_S = 30.0


def findings(admin: ApiClient, namespaces: Collection[str]) -> list[str]:
    """Return all violations at this moment."""
    nodes, pods = admin.items("/api/v1/nodes"), admin.items("/api/v1/pods")
    snapshot = usage.take_snapshot(admin, namespaces, time.time)
    charged = ledger.open_counts(namespaces)
    by_holder = usage.read(snapshot)
    return [
        *excess(by_holder),
        *charges(by_holder, charged),
        *full_nodes(nodes, pods),
        *visible_devices(nodes, snapshot),
    ]


def excess(by_holder: dict[Holder, Usage]) -> Iterator[str]:
    """Return holders that use more than is reserved; an object without a lease has nothing reserved."""
    for holder, found in by_holder.items():
        if found.counted - found.reserved:
            yield f"{_description(holder, found)} uses {dict(found.counted)} and has {dict(found.reserved)} reserved"


def charges(by_holder: dict[Holder, Usage], charged: Counter[Holder]) -> Iterator[str]:
    """Return holders whose charge differs from what is held, reserved or used."""
    for holder in {*by_holder, *charged}:
        found, count = by_holder.get(holder, Usage()), charged[holder]
        used = found.used.total()
        if holder.kind == "job":
            due = (found.reserved | found.used).total()
            if count != due:
                yield (
                    f"{_description(holder, found)} is charged for {count} instead of {due}: "
                    f"it has {dict(found.reserved)} reserved and its pods have {dict(found.used)}"
                )
        elif count < used:
            yield f"{_description(holder)} is charged for {count} and its pods have {used}"
        elif found.held and count != max(found.held, used):
            yield f"{_description(holder)} is charged for {count}, holds {found.held}, and its pods have {used}"
        elif not found.occupied and count:
            yield f"{_description(holder)} is charged for {count} and nothing of it is left"


def full_nodes(nodes: Iterable[Object], pods: Iterable[Object]) -> Iterator[str]:
    """Return nodes on which bound pods have more GPUs than there are."""
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        if usage.is_bound(pod):
            used.setdefault(pod["spec"]["nodeName"], Counter()).update(usage.gpus_of(pod))
    for node in nodes:
        name, there = node["metadata"]["name"], node["status"]["allocatable"]
        for resource, amount in used.get(name, Counter()).items():
            # By DRA the scheduler gives devices to such pods; the node then lists no amount.
            if resource in there and amount > int(there[resource]):
                yield f"pods on {name} have {amount} of {resource}, and it has {there[resource]}"


def visible_devices(nodes: Iterable[Object], snapshot: Snapshot) -> Iterator[str]:
    """Return containers on GPU nodes that got no GPU and may access all of the node."""
    with_gpus = {
        node["metadata"]["name"]
        for node in nodes
        if any(taint["key"] == "nvidia.com/gpu" for taint in node["spec"].get("taints", ()))
    }
    for pod in snapshot.pods:
        if not usage.is_bound(pod) or pod["spec"]["nodeName"] not in with_gpus or _is_holder(pod):
            continue
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            if not _has_gpu(container) and not _is_blind(container):
                yield (
                    f"container {container['name']} of pod {pod['metadata']['name']} has no GPU, is on GPU node "
                    f"{pod['spec']['nodeName']}, and its NVIDIA_VISIBLE_DEVICES is not void"
                )


def _is_holder(pod: Object) -> bool:
    return usage.HOLDER in pod["metadata"].get("labels", {})


def _has_gpu(container: Object) -> bool:
    return bool(+usage.gpus_of_container(container)) or bool(container.get("resources", {}).get("claims"))


def _is_blind(container: Object) -> bool:
    return {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container.get("env", ())


def leftovers(admin: ApiClient, namespaces: Collection[str]) -> list[str]:
    """Return what is left after everything was deleted and released."""
    snapshot = usage.take_snapshot(admin, namespaces, time.time)
    objects = {"claim": snapshot.claims, "workload": snapshot.workloads}
    for kind, path in NAMESPACED.items():
        objects[kind] = [one for namespace in namespaces for one in admin.items(path.format(namespace))]
    found = [f"{kind} {one['metadata']['name']} is left" for kind, items in objects.items() for one in items]
    for quota in snapshot.quotas:
        hard = quota.get("status", {}).get("hard", {})
        if "gpu-portal.io/slices-of" in quota["metadata"].get("annotations", {}):
            found += [f"{quota['metadata']['name']} has {hard[name]} of {name}" for name in hard if hard[name] != "0"]
    charged = ledger.open_counts(namespaces)
    return found + [f"{_description(holder)} is charged for {count}" for holder, count in charged.items()]


def _description(holder: Holder, found: Usage | None = None) -> str:
    if holder.kind in ("pod", "claim"):
        return f"{holder.kind} {holder.name}, which belongs to no allocation and no queued Job,"
    if found and found.job and holder.kind == "job":
        return f"job {found.job} ({holder.name})"
    return f"{holder.kind} {holder.name}"
