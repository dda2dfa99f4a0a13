"""Invariants that must hold within WITHIN_S of any operation, checked on the API server's objects and the ledger only.

1. What is used is at most what is reserved, for each allocation and queued Job, and nothing else has a GPU.
2. What is reserved and held is charged exactly; what pods use beyond it is charged until they are gone.
3. A pod on a GPU node asks for no more of its CPU and memory than goes with the pod's GPUs.
4. A controller has only pods that it made.

A finding is one sentence.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal

from kubernetes.utils.quantity import parse_quantity

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
        *beyond_shares(nodes, snapshot.pods),
        *visible_devices(nodes, snapshot),
        *adopted(snapshot.pods),
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


def beyond_shares(nodes: Iterable[Object], pods: Iterable[Object]) -> Iterator[str]:
    """Return bound pods that ask for more of their node's CPU or memory than goes with their GPUs.

    Judged on nodes with one kind of GPU by device plugin, of which each unit has an even part.
    """
    allocatable = {node["metadata"]["name"]: node["status"]["allocatable"] for node in nodes}
    for pod in pods:
        there = allocatable.get(pod["spec"].get("nodeName", ""), {})
        kinds = {name: int(amount) for name, amount in there.items() if name.startswith("nvidia.com/") and int(amount)}
        if len(kinds) != 1 or not usage.is_bound(pod):
            continue
        [(kind, units)] = kinds.items()
        used = usage.gpus_of(pod)[kind]
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        for resource in ("cpu", "memory"):
            asked, most = _requests(pod, resource), parse_quantity(there[resource]) * used / units
            if asked > most:
                yield (
                    f"pod {name} has {used} of {units} {kind} of {node}, and asks for {asked} of {resource}; "
                    f"{most} goes with them"
                )


def _requests(pod: Object, resource: str) -> Decimal:
    """Return what the containers of a pod ask for together, or one of its init containers alone if that is more."""

    def amounts(containers: Iterable[Object]) -> list[Decimal]:
        asked = (one.get("resources", {}).get("requests", {}).get(resource, "0") for one in containers)
        return [parse_quantity(amount) for amount in asked]

    inits = amounts(pod["spec"].get("initContainers", ()))
    return max(sum(amounts(pod["spec"]["containers"]), Decimal(0)), *inits, Decimal(0))


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


def adopted(pods: Iterable[Object]) -> Iterator[str]:
    """Return pods that a controller has taken for its own: those that it makes have its name before theirs."""
    for pod in pods:
        name = pod["metadata"]["name"]
        for owner in pod["metadata"].get("ownerReferences", ()):
            if owner.get("controller") and not name.startswith(f"{owner['name']}-"):
                yield f"pod {name} was adopted by {owner['kind']} {owner['name']}"


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
