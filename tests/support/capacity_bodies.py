"""Bodies of nodes and ResourceSlices with GPUs, as the watcher reads them, and what the capacity ledger has of them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor
from quotas.metering.models import CapacityInterval
from tests.support.clusters import LOCAL
from tests.support.observed import seen

L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.memory": "46068"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
A100 = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81920",
}
BALANCED = {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
HUGE = {"nvidia.com/mig-1g.10gb": 2**31 - 1, "nvidia.com/mig-2g.20gb": 2**31 - 19, "nvidia.com/mig-3g.40gb": 2**31 - 3}


def node(
    name: str = "l40s-0",
    revision: int = 1,
    capacity: dict[str, int] | None = None,
    allocatable: dict[str, int] | None = None,
    labels: dict[str, str] | None = None,
    *,
    ready: bool = True,
    cordoned: bool = False,
) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": 4} if capacity is None else capacity
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": str(revision), "labels": labels or L40S},
        "spec": {"taints": [TAINT], "unschedulable": cordoned},
        "status": {
            "capacity": amounts,
            "allocatable": amounts if allocatable is None else allocatable,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def gpu(index: int, *effects: str) -> dict[str, Any]:
    attributes = {"type": "gpu", "uuid": f"GPU-{index}", "productName": "NVIDIA H100 80GB HBM3"}
    return {
        "name": f"gpu-{index}",
        "attributes": {key: {"string": value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": "81559Mi"}},
        "taints": [{"key": "xid", "effect": effect} for effect in effects],
    }


def mig(index: int, start: int) -> dict[str, Any]:
    attributes = {"type": "mig", "profile": "3g.40gb", "parentUUID": f"GPU-{index}", "uuid": f"MIG-{index}-{start}"}
    return {
        "name": f"gpu-{index}-mig-3g40gb-9-{start}",
        "attributes": {key: {"string": value} for key, value in attributes.items()},
    }


def slices(revision: int, devices: Iterable[dict[str, Any]], generation: int = 1, count: int = 1) -> dict[str, Any]:
    pool = {"name": "h100-0", "generation": generation, "resourceSliceCount": count}
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"h100-0-{generation}", "uid": f"s-{generation}", "resourceVersion": str(revision)},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "h100-0", "pool": pool, "devices": list(devices)},
    }


def h100(revision: int = 1, **fields: Any) -> dict[str, Any]:
    return node("h100-0", revision, {}, labels=H100, **fields)


def watch(second: float, *bodies: dict[str, Any], gone: bool = False) -> None:
    record_observations(LOCAL, [seen(body, second, gone=gone) for body in bodies])


def history(name: str) -> list[tuple[datetime, datetime | None, int, int, str]]:
    rows = CapacityInterval.objects.filter(name=name).order_by("start", "pk")
    return [(row.start, row.end, row.count, row.available, row.state) for row in rows]


def of(name: str) -> CapacityInterval:
    return CapacityInterval.objects.get(name=name, end=None)


def accept_all() -> None:
    for flavor in Flavor.objects.all():
        catalog.accept_flavor(SYSTEM, flavor)


def offered(*bodies: dict[str, Any]) -> None:
    """Watch objects and offer what the catalogue finds."""
    watch(0, *bodies)
    reconcile_inventory(LOCAL)
    accept_all()
    reconcile_inventory(LOCAL)
