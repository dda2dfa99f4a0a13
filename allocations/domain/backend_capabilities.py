"""What each backend can do, by the path of a flavor. Pure.

A backend is a way to hold slices. Its objects are in ``allocations.cluster.backends``.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BackendCapabilities:
    """``label`` is what people call it. One that can do nothing of this holds a count of an extended resource."""

    label: str
    names_devices: bool = False
    """Kubernetes says which devices an allocation has. Else only pods' requests of the resource are counted."""
    takes_constraints: bool = False
    """A request can say what its slices have in common, or not (``allocation_spec.CONSTRAINTS``)."""
    spreads_on_request: bool = False
    """All slices are on one node unless the request spreads them. Else they are on whatever nodes its pods are."""
    takes_affinity: bool = False
    """The cards or the NVLink clique that slices come from can be chosen (``domain.device_affinity``)."""
    configures_sharing: bool = False
    """A request can say how its pods share a device. Else that is set on the node."""


CAPABILITIES: Mapping[str, BackendCapabilities] = {
    "dra": BackendCapabilities(
        "DRA",
        names_devices=True,
        takes_constraints=True,
        spreads_on_request=True,
        takes_affinity=True,
        configures_sharing=True,
    ),
    "device-plugin": BackendCapabilities("device plugin"),
}
NAMING_PATHS = frozenset(path for path, backend in CAPABILITIES.items() if backend.names_devices)
COUNTING_PATHS = frozenset(CAPABILITIES) - NAMING_PATHS
