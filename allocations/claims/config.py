"""Parses and validates how a claim's devices are shared (NVIDIA's GpuConfig and MigDeviceConfig).

The driver decodes the configuration strictly and only on the node, where an error shows as a pod that never starts. So
it is validated here just as strictly: unknown fields, fields of the other strategy, and values that the driver's
``Validate`` refuses are errors.
Source: dra-driver-nvidia-gpu, api/nvidia.com/resource/v1beta1 (sharing.go, validate.go).
"""

from collections.abc import Sequence
from typing import Any

from allocations.claims.reading import Errors, Node
from allocations.cluster.manifests import gpu_config
from allocations.domain.allocation_spec import INTERVALS, MPS, STRATEGIES, TIME_SLICING, Sharing
from allocations.domain.documents import fields_of
from quotas.catalog import quantities

FIELDS = tuple(each.name for each in fields_of(Sharing))
MPS_FIELDS = ("active_thread_percentage", "pinned_memory_limit", "per_device_pinned_memory_limit")
MAX_DEVICES = 128
MIN_MEMORY_LIMIT = 2**20
"""The driver rounds limits to whole MiB and refuses zero."""


def read(document: Any, path: str, errors: Errors, device: str, devices: int = MAX_DEVICES) -> Sharing:
    """Return how pods share devices, and add what is wrong to ``errors`` by field.

    ``device`` is their kind, gpu or mig; ``devices`` is the most of them.
    """
    node = Node(document, path, errors, FIELDS)
    strategy = node.choice("strategy", STRATEGIES)
    interval = node.choice("interval", INTERVALS) if node.has("interval") else None
    if interval and device == "mig":
        node.error(
            "interval", "A MIG device takes no interval (MigDeviceConfig has no timeSlicingConfig); leave it out."
        )
    elif interval and strategy == MPS:
        node.error("interval", "An interval is of TimeSlicing; leave it out, or choose that strategy.")
    if strategy == TIME_SLICING:
        for name in MPS_FIELDS:
            if node.has(name):
                node.error(name, "It is a limit of MPS; leave it out, or choose that strategy.")
    return Sharing(
        strategy=strategy,
        interval=interval,
        active_thread_percentage=node.whole("active_thread_percentage", 0, 100),
        pinned_memory_limit=_limit(node.fields.get("pinned_memory_limit"), node.at("pinned_memory_limit"), errors),
        per_device_pinned_memory_limit=_per_device(node, devices) or None,
    )


def _per_device(node: Node, devices: int) -> dict[str, str]:
    name = "per_device_pinned_memory_limit"
    limits: dict[str, str] = {}
    indexes = {str(index) for index in range(devices)}
    for key, value in node.mapping(name).items():
        path = f"{node.at(name)}[{str(key)[:64]}]"
        if key not in indexes:
            node.errors.add(
                path, f"Name the device by its index, 0 to {devices - 1}: its UUID is not known before it is held."
            )
        elif limit := _limit(value, path, node.errors):
            limits[key] = limit
    return limits


def _limit(value: Any, path: str, errors: Errors) -> str | None:
    if value is None:
        return None
    try:
        is_enough = isinstance(value, str) and quantities.value(value) >= MIN_MEMORY_LIMIT
    except ValueError as error:
        errors.add(path, f"{error}.")
        return None
    if not is_enough:
        errors.add(path, "Give an amount of memory of at least 1Mi as a string, such as 10Gi.")
        return None
    return str(value)


def opaque(sharing: Sharing, device: str, requests: Sequence[str] = ()) -> dict[str, Any]:
    """Return an entry of a claim's ``spec.devices.config``; no ``requests`` means all requests."""
    entry = {"opaque": gpu_config.opaque(sharing, is_mig=device == "mig")}
    return {"requests": list(requests), **entry} if requests else entry
