"""How the pods that use a claim share its devices (NVIDIA's GpuConfig and MigDeviceConfig), checked before it is made.

The driver decodes the configuration strictly and only on the node, where a mistake shows as a pod that never starts.
So it is read here as strictly: no unknown field, no field of the other strategy, no value that ``Validate`` refuses.
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
"""The driver hands limits on in whole MiB and refuses zero."""


def read(document: Any, path: str, errors: Errors, device: str, devices: int = MAX_DEVICES) -> Sharing:
    """How pods share so many ``devices`` of a kind, gpu or mig; what is wrong is added to ``errors`` by field."""
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
    known = {str(index) for index in range(devices)}
    for key, given in node.mapping(name).items():
        path = f"{node.at(name)}[{str(key)[:64]}]"
        if key not in known:
            node.errors.add(
                path, f"Name the device by its index, 0 to {devices - 1}: its UUID is not known before it is held."
            )
        elif limit := _limit(given, path, node.errors):
            limits[key] = limit
    return limits


def _limit(given: Any, path: str, errors: Errors) -> str | None:
    if given is None:
        return None
    try:
        enough = isinstance(given, str) and quantities.value(given) >= MIN_MEMORY_LIMIT
    except ValueError as error:
        errors.add(path, f"{error}.")
        return None
    if not enough:
        errors.add(path, "Give an amount of memory of at least 1Mi as a string, such as 10Gi.")
        return None
    return str(given)


def opaque(sharing: Sharing, device: str, requests: Sequence[str] = ()) -> dict[str, Any]:
    """An entry of a claim's ``spec.devices.config``, for the named requests; for all of them where none is named."""
    built = {"opaque": gpu_config.opaque(sharing, is_mig=device == "mig")}
    return {"requests": list(requests), **built} if requests else built
