"""What a node has, from the mirror's facts: physical GPUs by DRA, and resources of the device plugin. Pure.

Sources: NVIDIA dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin (names and attributes of devices); NVIDIA
k8s-device-plugin (resources) and GPU feature discovery (labels).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from allocations.domain.observed_facts import NodeFacts, PublishedDevice, ResourceSliceFacts
from quotas.catalog import resource_pools
from quotas.catalog.layouts import parent_gpu
from quotas.metering.units import FoundUnit

NODE_NOT_READY, CORDONED, UNHEALTHY, TAINTED, MISSING = "node_not_ready", "cordoned", "unhealthy", "tainted", "missing"
"""Values of ``CapacityInterval.state``: why units are not available."""
LABELS = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/mig.config")
ATTRIBUTES, LAYOUT = ("productName", "architecture"), "layout"
KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
MAX_COUNT = 2**31 - 1
MAX_RESOURCE_NAME, MAX_UUID = 127, 64
"""What the columns of CapacityInterval have room for. A node may publish anything."""


def resources(node: NodeFacts, known: Mapping[str, FoundUnit]) -> dict[str, FoundUnit]:
    """Return the GPU resources of a node by name, of which what is allocatable is available while the node is.

    Those that were ``known`` are missing once the device plugin publishes none at all; while it publishes others, the
    layout has changed.
    """
    node_state = _node_state(node)
    labels = {name: value for name, value in node["labels"].items() if name in LABELS or ".replicas" in name}
    found = {}
    for name, amount in node["capacity"].items():
        if amount > 0 and _is_gpu(name):
            count = min(amount, MAX_COUNT)
            available = 0 if node_state else min(count, max(0, node["allocatable"].get(name, 0)))
            state = node_state or (UNHEALTHY if available < count else "")
            found[name] = FoundUnit(count, available, state, labels=labels)
    gone = {} if found else {name: FoundUnit(one.count, 0, MISSING, labels=one.labels) for name, one in known.items()}
    return found | gone


def gpus(node: NodeFacts, slices: Iterable[ResourceSliceFacts], known: Mapping[str, FoundUnit]) -> dict[str, FoundUnit]:
    """Return the physical GPUs of a node by device name.

    A GPU that was ``known`` and is not published any more is missing, and not available, unless the node has changed to
    the device plugin. While the driver publishes a pool anew, so that slices of its newest generation are lacking, what
    was known goes on.
    """
    pools = resource_pools.newest(slices, lambda one: (one["pool"], one["generation"]))
    node_state = _node_state(node)
    if any(len(pieces) < pieces[0]["slice_count"] for pieces in pools.values()):
        published = dict(known)
    else:
        devices = [device for pieces in pools.values() for piece in pieces for device in piece["devices"]]
        published = _published(devices)
        if not any(count > 0 and _is_gpu(name) for name, count in node["capacity"].items()):
            published |= _missing(published, known)
    return {name: _with_node_state(one, node_state) for name, one in published.items()}


def _missing(published: Mapping[str, FoundUnit], known: Mapping[str, FoundUnit]) -> dict[str, FoundUnit]:
    """Return the known GPUs that are published neither by name nor by UUID: a reboot may number GPUs anew."""
    uuids = {one.uuid for one in published.values()} - {""}
    return {
        name: FoundUnit(1, 0, MISSING, one.uuid, one.labels)
        for name, one in known.items()
        if name not in published and one.uuid not in uuids
    }


def _with_node_state(unit: FoundUnit, node_state: str) -> FoundUnit:
    """Return the GPU as its node's state leaves it; what is wrong with the GPU itself is told first."""
    if not node_state:
        own = unit.state if unit.state not in {NODE_NOT_READY, CORDONED} else ""
        return FoundUnit(unit.count, 0 if own else unit.count, own, unit.uuid, unit.labels)
    own = unit.state if unit.state in {TAINTED, MISSING} else node_state
    return FoundUnit(unit.count, 0, own, unit.uuid, unit.labels)


def _published(devices: Collection[PublishedDevice]) -> dict[str, FoundUnit]:
    """Return the GPUs behind the devices. Where MIG devices alone are published, a GPU is known by theirs; if they take
    no counters, an administrator has divided it so, and its labels have the names of its devices.
    """
    by_gpu: dict[str, list[PublishedDevice]] = defaultdict(list)
    for device in devices:
        if device["attributes"].get("type") in ("gpu", "mig"):
            by_gpu[parent_gpu(device["name"])].append(device)
    found = {}
    for name, parts in by_gpu.items():
        own = [device for device in parts if device["name"] == name] or parts
        attributes = own[0]["attributes"]
        is_tainted = all(any(effect in KEEPS_AWAY for _, _, effect in device["taints"]) for device in own)
        uuid = str(attributes.get("parentUUID") or attributes.get("uuid", ""))[:MAX_UUID]
        labels: dict[str, Any] = {key: attributes[key] for key in ATTRIBUTES if key in attributes}
        if own is parts and not any(device["counters"] for device in parts):
            labels[LAYOUT] = sorted(device["name"] for device in parts)
        found[name] = FoundUnit(1, int(not is_tainted), TAINTED if is_tainted else "", uuid, labels)
    return found


def _node_state(node: NodeFacts) -> str:
    if not node["ready"]:
        return NODE_NOT_READY
    return CORDONED if node["unschedulable"] else ""


def _is_gpu(resource: str) -> bool:
    suffix = resource.removeprefix("nvidia.com/").removesuffix(".shared")
    is_gpu = suffix == "gpu" or suffix.startswith("mig-")
    return resource.startswith("nvidia.com/") and is_gpu and len(resource) <= MAX_RESOURCE_NAME
