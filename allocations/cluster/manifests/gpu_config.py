"""NVIDIA's opaque configuration of a claim: how the containers that use its devices share them. Pure.

The driver decodes it strictly, on the node, where a mistake would only show as a pod that does not start; so what goes
in is checked before (``allocations.claims.config``). Source: dra-driver-nvidia-gpu, api/nvidia.com/resource/v1beta1.
"""

from typing import Any

from allocations.domain.allocation_spec import MPS, TIME_SLICING, Sharing
from quotas.catalog.nvidia import DRA_DRIVER

API_VERSION = "resource.nvidia.com/v1beta1"
_MPS_FIELDS = {
    "active_thread_percentage": "defaultActiveThreadPercentage",
    "pinned_memory_limit": "defaultPinnedDeviceMemoryLimit",
    "per_device_pinned_memory_limit": "defaultPerDevicePinnedMemoryLimit",
}


def opaque(sharing: Sharing, *, is_mig: bool) -> dict[str, Any]:
    """Strategy TimeSlicing with its interval, or MPS with its limits."""
    chosen: dict[str, Any] = {"strategy": sharing.strategy}
    if sharing.strategy == TIME_SLICING and not is_mig and sharing.interval:
        chosen["timeSlicingConfig"] = {"interval": sharing.interval}
    if sharing.strategy == MPS:
        given = {theirs: getattr(sharing, ours) for ours, theirs in _MPS_FIELDS.items()}
        limits = {theirs: value for theirs, value in given.items() if value is not None}
        if limits:
            chosen["mpsConfig"] = limits
    kind = "MigDeviceConfig" if is_mig else "GpuConfig"
    return {"driver": DRA_DRIVER, "parameters": {"apiVersion": API_VERSION, "kind": kind, "sharing": chosen}}
