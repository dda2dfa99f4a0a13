"""Builds NVIDIA's opaque device configuration of a claim: how containers share its devices. Pure.

The driver decodes it strictly on the node, where an error would only show as a pod that does not start. So the values
are validated before (``allocations.claims.config``). Source: dra-driver-nvidia-gpu, api/nvidia.com/resource/v1beta1.
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
    """Return the configuration for the strategy TimeSlicing with its interval, or MPS with its limits."""
    settings: dict[str, Any] = {"strategy": sharing.strategy}
    if sharing.strategy == TIME_SLICING and not is_mig and sharing.interval:
        settings["timeSlicingConfig"] = {"interval": sharing.interval}
    if sharing.strategy == MPS:
        values = {nvidia_name: getattr(sharing, name) for name, nvidia_name in _MPS_FIELDS.items()}
        limits = {nvidia_name: value for nvidia_name, value in values.items() if value is not None}
        if limits:
            settings["mpsConfig"] = limits
    kind = "MigDeviceConfig" if is_mig else "GpuConfig"
    return {"driver": DRA_DRIVER, "parameters": {"apiVersion": API_VERSION, "kind": kind, "sharing": settings}}
