"""Bodies of the objects of a week, as the API server has them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from allocations.cluster import names
from allocations.models import Allocation
from quotas.catalog.discovery import DeviceFact
from quotas.catalog.mig_tables import TABLES
from tests.support import capacity_bodies, mig_facts
from tests.support.week.plan import GPUS_OF_A_NODE, LAYOUTS, MADE, SHARES, UNITS, Device, NodeState, Use

T0 = datetime(2026, 11, 2, tzinfo=UTC)
DRIVER = "gpu.nvidia.com"
LABELS = {
    "l40s": capacity_bodies.L40S,
    "h100": capacity_bodies.H100,
    "a30": {"nvidia.com/gpu.product": "NVIDIA-A30", "nvidia.com/gpu.memory": "24576"},
    "a10": {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.memory": "23028"},
    "a100": {**capacity_bodies.A100, "nvidia.com/mig.config.state": "success"},
    "t4": {
        "nvidia.com/gpu.product": "Tesla-T4",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    },
    "l4": {
        "nvidia.com/gpu.product": "NVIDIA-L4",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "23034",
        "nvidia.com/gpu.replicas": "2",
        "nvidia.com/gpu.sharing-strategy": "mps",
    },
    "a40": {
        "nvidia.com/gpu.product": "NVIDIA-A40",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "46068",
        "nvidia.com/vgpu.present": "true",
    },
}
Body = dict[str, Any]


def moment(second: int) -> datetime:
    return T0 + timedelta(seconds=second)


def new(kind: str, name: str, namespace: str, **metadata: Any) -> Body:
    common = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "2"}
    return {"kind": kind, "metadata": {**common, **({"namespace": namespace} if namespace else {}), **metadata}}


def labels(row: Allocation) -> dict[str, str]:
    return {names.MANAGED: "true", names.ALLOCATION: row.name, names.PROJECT: row.project.slug}


def claim(use: Use, row: Allocation | None = None) -> Body:
    results: list[Body] = [
        {
            "request": f"slice-{n}",
            "driver": DRIVER,
            "pool": device.node,
            "device": device_name(device),
            **_share(use, device),
        }
        for n, device in enumerate(use.devices)
    ]
    if use.is_custom:
        admin = {"request": "admin", "driver": DRIVER, "pool": use.devices[0].node, "device": "gpu-0"}
        results.append(admin | {"adminAccess": True})
    name, namespace = (row.name, row.project.namespace) if row else (f"f-{use.number}", "elsewhere")
    body = new("ResourceClaim", name, namespace, **({"labels": labels(row)} if row else {}))
    allocated = f"{moment(use.span.start):%FT%TZ}"
    body["status"] = {"allocation": {"devices": {"results": results}, "allocationTimestamp": allocated}}
    return body


def _share(use: Use, device: Device) -> Body:
    if not device.shares:
        return {}
    return {"shareID": f"share-{use.number}", "consumedCapacity": {"shares": str(device.shares)}}


def holder(row: Allocation, node: str) -> Body:
    body = new("Pod", names.holder(row.name), row.project.namespace, labels=labels(row))
    claims = [{"name": "gpu-portal", "resourceClaimName": row.name}]
    return body | {
        "spec": {"nodeName": node, "containers": [], "resourceClaims": claims},
        "status": {"phase": "Running"},
    }


def pod(name: str, namespace: str, node: str, resource: str, amount: int, **metadata: Any) -> Body:
    container = {"name": "main", "resources": {"limits": {resource: str(amount)}}}
    body = new("Pod", name, namespace, **metadata)
    return body | {"spec": {"nodeName": node, "containers": [container]}, "status": {"phase": "Running"}}


def device_name(device: Device) -> str:
    gpu, geometry = f"gpu-{device.gpu}", TABLES["A30"] if device.profile in MADE else mig_facts.H100
    return mig_facts.device(gpu, device.profile, device.start, geometry) if device.profile else gpu


def node(name: str, flavor: str, revision: int, state: NodeState) -> Body:
    units = LAYOUTS[state.layout] if flavor == "a100" else UNITS.get(flavor, {})
    usable = {resource: amount - state.broken for resource, amount in units.items()}
    return capacity_bodies.node(
        name,
        revision,
        units,
        usable,
        LABELS[flavor],
        ready=state.state != "not_ready",
        cordoned=state.state == "cordoned",
    )


def resource_slice(node: str, revision: int, state: NodeState) -> Body:
    """Return a ResourceSlice with every GPU, or each of its instances, of h100 all possible ones; those of a broken GPU
    are tainted.
    """
    taints = [{"key": "xid", "effect": "NoSchedule"}]
    devices = [
        {
            "name": fact.name,
            "attributes": {key: {"string": value} for key, value in fact.attributes.items()},
            "capacity": {key: {"value": value} for key, value in fact.capacity.items()},
            "consumesCounters": [
                {"counterSet": name, "counters": {key: {"value": value} for key, value in counters.items()}}
                for name, counters in fact.counters.items()
            ],
            "taints": taints if index == state.broken - 1 else [],
            "allowMultipleAllocations": fact.shareable,
        }
        for index in range(GPUS_OF_A_NODE)
        for fact in _facts(node, index)
    ]
    body = new("ResourceSlice", f"{node}-slice", "")
    body["metadata"]["resourceVersion"] = str(revision)
    pool = {"name": node, "generation": revision, "resourceSliceCount": 1}
    return body | {"spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}}


def _facts(node: str, index: int) -> Iterable[DeviceFact]:
    flavor, name, uuid = node.partition("-")[0], f"gpu-{index}", f"GPU-{node}-{index}"
    if flavor == "h100":
        return mig_facts.cut_gpu(node, index)
    if flavor == "a10":
        whole = {"type": "gpu", "uuid": uuid, "productName": "NVIDIA A10"}
        return [DeviceFact(name, whole, {"memory": "23028Mi", "shares": str(SHARES)}, shareable=True)]
    return [
        DeviceFact(
            device_name(Device(node, index, profile, start)),
            {"type": "mig", "profile": profile, "parentUUID": uuid, "productName": "NVIDIA A30"},
            {"memory": f"{TABLES['A30'].profile(profile).memory_mib}Mi"},
        )
        for profile, (_, [start]) in MADE.items()
    ]


def lease(use: Use, row: Allocation) -> Body:
    body = new("Workload", names.lease(row.name), row.project.namespace, labels=labels(row))
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": f"{moment(use.admitted):%FT%TZ}"}
    return body | {"spec": {}, "status": {"admission": {"clusterQueue": "team"}, "conditions": [admitted]}}
