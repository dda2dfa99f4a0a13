"""The fraction of GPU memory that the units of a claim's lease amount to. Pure.

A unit of `gpu-portal.io/memory-slices` is one of the GPU's memory slices, of `gpu-portal.io/gpu-shares` one of the
shares of a GPU, of a MIG profile's resource a device of that profile, and of any other resource a whole GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from quotas.catalog.dra_resources import GPU_SHARES
from quotas.catalog.geometry import (
    COMPUTE_SLICES,
    MEMORY_SLICES,
    gpu_slices,
    profile_of_resource,
    profile_part,
)


@dataclass(frozen=True)
class GpuFact:
    """A flavor's GPU: its product label and memory, its memory slices (0 without dynamic MIG), and its number of
    shares.
    """

    product: str
    memory_mib: int = 0
    memory_slices: int = 0
    replicas: int = 1


def memory_part(units: Mapping[str, int], gpu: GpuFact) -> Fraction:
    """Return the memory of ``units`` ({resource: amount}) in GPUs; 3/2 is a GPU and a half."""
    return sum((amount * _of_unit(resource, gpu) for resource, amount in units.items()), Fraction(0))


def _of_unit(resource: str, gpu: GpuFact) -> Fraction:
    if resource == COMPUTE_SLICES:
        return Fraction(0)
    if resource == MEMORY_SLICES:
        return Fraction(1, gpu.memory_slices or gpu_slices(gpu.product).memory)
    if resource == GPU_SHARES:
        return Fraction(1, gpu.replicas)
    _, is_mig, profile = resource.partition("/mig-")
    if not is_mig:
        return Fraction(1)
    return profile_part(gpu.product, profile_of_resource(profile), gpu.memory_mib)
