"""Facts about objects of Dynamic Resource Allocation: ResourceClaims, ResourceSlices and DeviceClasses. Pure."""

from collections.abc import Iterable
from typing import Any

from allocations.cluster import gpu_selector
from allocations.cluster.projectors.fields import Raw, controller, controller_kind, iso_time, whole
from allocations.domain.observed_facts import (
    AllocatedDevice,
    DeviceClassFacts,
    Owner,
    ResourceClaimFacts,
    ResourceSliceFacts,
)
from quotas.catalog.nvidia import DRA_DRIVER


def claim(raw: Raw) -> ResourceClaimFacts:
    """Return the facts of a ResourceClaim."""
    allocation = raw.get("status", {}).get("allocation", {})
    requests = raw.get("spec", {}).get("devices", {}).get("requests", ())
    results = allocation.get("devices", {}).get("results", ())
    admin_devices = [_device(r) for r in results if r.get("adminAccess")]
    facts: ResourceClaimFacts = {
        "devices": [_device(r) for r in results if not r.get("adminAccess")],
        "allocated_at": iso_time(allocation.get("allocationTimestamp", "")),
        "cards": [_selected_gpu(request.get("exactly", {}).get("selectors", ())) for request in requests],
    }
    if admin_devices:
        facts["admin_devices"] = admin_devices
    metadata = raw.get("metadata", {})
    if pod := _pod(metadata):
        facts["pod"] = pod["uid"]
    if owner_kind := controller_kind(metadata):
        facts["owner_kind"] = owner_kind
    return facts


def _pod(metadata: Raw) -> Owner | None:
    is_extended = metadata.get("annotations", {}).get("resource.kubernetes.io/extended-resource-claim") == "true"
    return controller(metadata, "Pod") if is_extended else None


def _device(result: Raw) -> AllocatedDevice:
    device: AllocatedDevice = {
        "request": result["request"],
        "driver": result["driver"],
        "pool": result["pool"],
        "device": result["device"],
    }
    if not result.get("shareID"):
        return device
    consumed = result.get("consumedCapacity", {})
    shares = {"shares": str(whole(consumed["shares"]))} if "shares" in consumed else {}
    return {**device, "share": result["shareID"], "consumed": {**consumed, **shares}}


def _selected_gpu(selectors: Iterable[Raw]) -> str:
    """Return the UUID of the GPU that one of the selectors names, as ``backends.dra`` writes it; "" if none."""
    matches = (gpu_selector.OF_GPU.fullmatch(selector.get("cel", {}).get("expression", "")) for selector in selectors)
    return next((match[1] for match in matches if match), "")


def resource_slice(raw: Raw) -> ResourceSliceFacts | None:
    """Return the facts of a ResourceSlice of NVIDIA's driver; None for other drivers."""
    spec = raw.get("spec", {})
    if spec.get("driver") != DRA_DRIVER:
        return None
    return {
        "driver": spec["driver"],
        "node": spec.get("nodeName", ""),
        "pool": spec["pool"]["name"],
        "generation": spec["pool"]["generation"],
        "slice_count": spec["pool"]["resourceSliceCount"],
        "devices": [
            {
                "name": d["name"],
                "attributes": {k: _plain(v) for k, v in d.get("attributes", {}).items()},
                "versions": sorted(k for k, v in d.get("attributes", {}).items() if "version" in v),
                "capacity": {k: v["value"] for k, v in d.get("capacity", {}).items()},
                "counters": [
                    {"set": c["counterSet"], "counters": {k: v["value"] for k, v in c["counters"].items()}}
                    for c in d.get("consumesCounters", ())
                ],
                "taints": [[t["key"], t.get("value", ""), t["effect"]] for t in d.get("taints", ())],
                "shareable": d.get("allowMultipleAllocations", False),
            }
            for d in spec.get("devices", ())
        ],
        "shared_counters": [
            {"name": c["name"], "counters": {k: v["value"] for k, v in c["counters"].items()}}
            for c in spec.get("sharedCounters", ())
        ],
    }


def _plain(value: Raw) -> Any:
    """Return the value of a typed attribute ({string: x} | {int: n} | {bool: b} | {version: v})."""
    return next(iter(value.values()), None)


def device_class(raw: Raw) -> DeviceClassFacts:
    """Return the facts of a DeviceClass."""
    spec = raw.get("spec", {})
    return {
        "extended_resource": spec.get("extendedResourceName", ""),
        "selectors": [each["cel"]["expression"] for each in spec.get("selectors", ()) if "cel" in each],
    }
