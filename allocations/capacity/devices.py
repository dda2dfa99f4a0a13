"""Physical GPUs and the shapes of slices on them, as plain types. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry

SAME_GPU, SAME_PCIE_ROOT, SAME_CLIQUE, DISTINCT_GPUS = "same_gpu", "same_pcie_root", "same_clique", "distinct_gpus"
"""Fields of ``allocations.domain.allocation_spec.Constraints``."""

Occupancy = frozenset[Placement] | None
"""The MIG placements in use on a GPU with dynamic MIG; None if the whole GPU is in use."""


@dataclass(frozen=True)
class PhysicalGpu:
    """A GPU published by DRA.

    ``allocated`` lists its devices that are allocated to claims; a shared device is listed once per claim.
    ``mig_profiles`` maps its statically created MIG devices to their profiles. ``blocked_gpus`` is the number of GPUs
    of its node that cannot be used because the node lacks CPU, memory or pods for them.
    """

    node: str
    name: str
    uuid: str
    pcie_root: str = ""
    clique: str = ""
    allocated: tuple[str, ...] = ()
    mig_profiles: Mapping[str, str] = field(default_factory=dict, hash=False)
    blocked_gpus: Fraction = field(default=Fraction(0), hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Node and name; unique within a cluster."""
        return self.node, self.name


@dataclass(frozen=True)
class SliceShape:
    """The kind and size of an offering's slices. ``replicas`` slices share a GPU."""

    kind: str
    profile: str = ""
    replicas: int = 1


def occupancy(geometry: Geometry, gpu: PhysicalGpu) -> Occupancy:
    """Return the placements of the GPU's MIG devices in use; None if the whole GPU is in use, or may be."""
    placements = [layouts.known_placement(geometry, device) for device in gpu.allocated]
    return None if None in placements else frozenset(place for place in placements if place is not None)


def group_of(gpu: PhysicalGpu, constraints: Collection[str], *, spread: bool) -> tuple[str, ...] | None:
    """Return the group of GPUs within which a request with these constraints must stay, if it uses this GPU.

    None if the request cannot use the GPU.
    """
    if SAME_CLIQUE in constraints and not gpu.clique:
        return None
    if SAME_PCIE_ROOT in constraints and not gpu.pcie_root:
        return None
    if SAME_GPU in constraints:
        return gpu.key
    if SAME_PCIE_ROOT in constraints:
        return gpu.node, gpu.pcie_root
    if not spread:
        return (gpu.node,)
    return (gpu.clique,) if SAME_CLIQUE in constraints else ()
