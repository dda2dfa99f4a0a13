"""The capabilities of each backend, by the path of a flavor. Pure.

A backend is a way to hold slices; ``allocations.cluster.backends`` builds its objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BackendCapabilities:
    """What a backend can do. One without any capability holds a count of an extended resource.

    ``label`` is its name on pages.
    """

    label: str
    names_devices: bool = False
    """Kubernetes names the devices of an allocation. Else only pods' requests of the resource are counted."""
    takes_constraints: bool = False
    """A request can constrain the placement of its slices (``allocation_spec.CONSTRAINTS``)."""
    spreads_on_request: bool = False
    """All slices are on one node unless the request spreads them. Else they are on the nodes of its pods."""
    takes_affinity: bool = False
    """The GPUs or the NVLink clique of the slices can be chosen (``domain.device_affinity``)."""
    configures_sharing: bool = False
    """A request can configure how its pods share a device. Else the node's configuration applies."""


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
