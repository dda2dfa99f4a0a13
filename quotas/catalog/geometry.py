"""MIG geometry: parses profile names, and computes the fraction of a GPU that a profile takes. Pure.

A MIG GPU is divided into compute and memory slices. Profiles are named `<compute>g.<memory>gb` with an optional
attribute (`+me`, `+gfx`, `-me`). Sources: NVIDIA MIG user guide, "Supported MIG profiles"; nvidia-smi mig -lgip.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from quotas.catalog.mig_tables import geometry_of, tables_of

COMPUTE_SLICES = "gpu-portal.io/compute-slices"
MEMORY_SLICES = "gpu-portal.io/memory-slices"

_PROFILE = re.compile(r"(?P<compute>\d+)g\.(?P<memory>\d+)gb(?P<attribute>[+-][a-z.]+)?")
_RESOURCE_PROFILE = re.compile(r"(?P<base>\d+g\.\d+gb(?:-[a-z.]+)?)(?:\.(?P<attribute>[a-z.]+))?")


@dataclass(frozen=True)
class Slices:
    """Compute and memory slices: of a whole GPU, or taken by a profile."""

    compute: int
    memory: int


SEVEN_SLICES = Slices(7, 8)


def gpu_slices(product: str) -> Slices:
    """Return the slices of a GPU by its `nvidia.com/gpu.product` label; 7 and 8 for an unknown product, as
    most have.
    """
    known = geometry_of(product)
    return Slices(known.compute, known.memory) if known else SEVEN_SLICES


def compute_slices(profile: str) -> int:
    """Return the compute slices in a profile's name; raise ValueError for a name that is no profile."""
    return int(_parsed(profile)["compute"])


class UnknownDivision(ValueError):
    """How a GPU is divided is not known: no table lists it, and its memory is not known."""


HOW_TO_SET = "set the memory of a whole GPU (gpu_memory of the flavor), as nvidia-smi prints it"
"""What an operator does about an UnknownDivision."""


def profile_slices(product: str, profile: str, gpu_memory_mib: int = 0) -> Slices:
    """Return the slices that a profile takes of a GPU of that product: by its table, else by its name and the GPU's
    memory, which is not needed for a profile with all compute slices.

    The name gives memory in rounded GiB; the nearest number of memory slices is exact for every profile in NVIDIA's
    tables (A100 3g.40gb: 40 of 80 GiB = 4 of 8). Raises UnknownDivision, and ValueError for a name that is no profile.
    """
    parsed, gpu = _parsed(profile), gpu_slices(product)
    tables = tables_of(product, gpu_memory_mib)
    listed = {Slices(one.compute, one.size) for table in tables for one in table.profiles if one.name == profile}
    if len(listed) == 1:
        return listed.pop()
    if int(parsed["compute"]) >= gpu.compute:
        return gpu
    if listed or not gpu_memory_mib:
        raise UnknownDivision(f"how {product.partition('-MIG-')[0] or 'the GPU'} is divided is not known")
    memory = round(int(parsed["memory"]) * 1024 / Fraction(gpu_memory_mib, gpu.memory))
    return Slices(int(parsed["compute"]), min(gpu.memory, max(1, memory)))


def instances_per_gpu(product: str, profile: str, gpu_memory_mib: int = 0) -> int:
    """Return how many instances of a profile fit a GPU of that product; raises what ``profile_slices`` raises."""
    known = geometry_of(product, gpu_memory_mib, profile)
    if known:
        return known.profile(profile).max_instances
    share = gpu_share(profile_slices(product, profile, gpu_memory_mib), gpu_slices(product))
    return 1 if "+me" in profile else floor(1 / share)


def gpu_share(slices: Slices, gpu: Slices) -> Fraction:
    """Return the part of a GPU's price for what is taken: the larger of its compute and memory parts.

    That is what others cannot use. On mixed layouts the parts of one GPU may sum to 15/14, so a sum per GPU has to be
    normalised.
    """
    return max(Fraction(slices.compute, gpu.compute), Fraction(slices.memory, gpu.memory))


def memory_part(slices: Slices, gpu: Slices) -> Fraction:
    """Return the part of a GPU's memory. Unlike prices, the parts of one GPU never sum to more than it."""
    return Fraction(slices.memory, gpu.memory)


def profile_part(product: str, profile: str, gpu_memory_mib: int = 0) -> Fraction:
    """Return the part of a GPU's memory that a profile takes, if how it is divided is not known that of its compute
    slices; raise ValueError for a name that is no profile.
    """
    try:
        slices = profile_slices(product, profile, gpu_memory_mib)
    except UnknownDivision:
        slices = Slices(compute_slices(profile), compute_slices(profile))
    return memory_part(slices, gpu_slices(product))


def profile_of_resource(suffix: str) -> str:
    """Return the profile of a device plugin's resource name, where `+` is written `.`: `1g.5gb.me` is `1g.5gb+me`.

    Raises ValueError for a name that is no profile. Source: NVIDIA k8s-device-plugin internal/rm/rm.go.
    """
    match = _RESOURCE_PROFILE.fullmatch(suffix)
    if not match:
        raise ValueError(f"{suffix!r} names no MIG profile")
    return match["base"] + (f"+{match['attribute']}" if match["attribute"] else "")


def _parsed(profile: str) -> re.Match[str]:
    match = _PROFILE.fullmatch(profile)
    if not match:
        raise ValueError(f"{profile!r} is no MIG profile; profiles look like 1g.10gb or 1g.10gb+me")
    return match
