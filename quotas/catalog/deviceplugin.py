"""Reads what NVIDIA's device plugin offers on a node: counts of extended resources.

The plugin publishes `nvidia.com/gpu`, `nvidia.com/mig-<profile>` and, for time-slicing or MPS with `renameByDefault`,
the same with `.shared`; without it only the label of replicas shows that. In a virtual machine the GPU is a vGPU: it
has its own memory, and takes turns on a GPU that other machines use. Labels come from GPU feature discovery. Sources:
NVIDIA k8s-device-plugin, api/config/v1 and docs/gpu-feature-discovery/README.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from quotas.catalog import storable
from quotas.catalog.geometry import Slices, gpu_share, gpu_slices, memory_part, profile_of_resource, profile_slices
from quotas.catalog.mig_tables import geometry_of
from quotas.catalog.types import NodeFact, Reading, Supply

PREFIX = "nvidia.com/"
SHARED = ".shared"
PRODUCT_LABEL = "nvidia.com/gpu.product"
INVALID = "-MIG-INVALID"
BROKEN = (
    "MIG is broken here (label nvidia.com/gpu.product ends in MIG-INVALID), so not offered: strategy single needs "
    "slices of one profile on every GPU. Set such a layout (nvidia.com/mig.config=all-1g.10gb), or strategy mixed"
)
SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"


def read(node: NodeFact) -> Reading | None:
    """Return what the device plugin supplies on a node, or None if it publishes nothing there."""
    if node.labels.get(PRODUCT_LABEL, "").endswith(INVALID):
        return Reading("device-plugin", "plain", (), problems=(BROKEN,))
    names = sorted(name for name, amount in node.capacity.items() if amount > 0 and name.startswith(PREFIX))
    supplies, problems = [], []
    for name in names:
        try:
            supply = _supply(name, node)
        except ValueError as error:
            problems.append(str(error))
            continue
        if supply:
            supplies.append(supply)
    kept, odd = storable.supplies(supplies)
    problems += odd
    if not kept and not problems:
        return None
    return Reading("device-plugin", _strategy(kept), kept, problems=tuple(problems))


def _supply(name: str, node: NodeFact) -> Supply | None:
    """Return the supply of a resource name; None if it is no GPU (`nvidia.com/hostdev`). Raises ValueError if it is
    unclear.
    """
    suffix = name.removeprefix(PREFIX)
    base = suffix.removesuffix(SHARED)
    if base != "gpu" and not base.startswith("mig-"):
        return None
    labels = node.labels
    profile = _profile(base, labels)
    is_virtual = labels.get("nvidia.com/vgpu.present") == "true"
    supply = Supply(
        pool=suffix,
        unit={name: 1},
        consumes={name: 1},
        kind="mig" if profile else "whole",
        profile=profile,
        isolation="none" if is_virtual else "hardware" if profile else "full",
        gpu_share=gpu_share(*_mig_slices(profile, labels)) if profile else Fraction(1),
        memory_part=memory_part(*_mig_slices(profile, labels)) if profile else Fraction(1),
        usable=min(node.allocatable.get(name, 0), node.capacity[name]),
        max_usable=node.capacity[name],
        resource=name,
        sharing="vgpu" if is_virtual else "",
        memory_mib=_memory(base, profile, labels),
    )
    replicas = _replicas(base, labels)
    if suffix == base and replicas <= 1:
        return supply
    if replicas <= 1:
        raise ValueError(
            f"{name} is shared, but the label {PREFIX}{base}.replicas does not say by how many; "
            "GPU feature discovery writes it"
        )
    return replace(
        supply,
        kind="shared",
        isolation="none",
        gpu_share=supply.gpu_share / replicas,
        memory_part=supply.memory_part / replicas,
        sharing=_sharing(base, labels),
        replicas=replicas,
    )


def _profile(base: str, labels: Mapping[str, str]) -> str:
    """Return the MIG profile of a resource; by strategy `single` the resource is `gpu` and the product label
    names it.
    """
    if base.startswith("mig-"):
        return profile_of_resource(base.removeprefix("mig-"))
    _, mig, profile = labels.get(PRODUCT_LABEL, "").removesuffix("-SHARED").partition("-MIG-")
    return profile_of_resource(profile) if mig else ""


def _mig_slices(profile: str, labels: Mapping[str, str]) -> tuple[Slices, Slices]:
    """Return the slices of a profile, and of its GPU."""
    product = labels.get(PRODUCT_LABEL, "")
    # By strategy `single` the memory label is the slice's own, and says nothing of the GPU.
    memory = 0 if "-MIG-" in product else _number(labels, "nvidia.com/gpu.memory")
    return profile_slices(product, profile, memory), gpu_slices(product)


def _memory(base: str, profile: str, labels: Mapping[str, str]) -> int:
    """Return the MiB of one GPU or instance, as labelled, else by the product's table; 0 if neither has it."""
    labelled = _number(labels, f"{PREFIX}{base}.memory")
    known = geometry_of(labels.get(PRODUCT_LABEL, "")) if profile and not labelled else None
    return next((p.memory_mib for p in known.profiles if p.name == profile), 0) if known else labelled


def _replicas(base: str, labels: Mapping[str, str]) -> int:
    return _number(labels, f"{PREFIX}{base}.replicas") or 1


def _sharing(base: str, labels: Mapping[str, str]) -> str:
    strategy = labels.get(f"{PREFIX}{base}.sharing-strategy") or labels.get(SHARING_LABEL)
    return strategy if strategy in {"time-slicing", "mps"} else "time-slicing"


def _number(labels: Mapping[str, str], label: str) -> int:
    value = labels.get(label, "")
    return int(value) if value.isdecimal() else 0


def _strategy(supplies: Sequence[Supply]) -> str:
    """Return `plain`, or how GPUs are shared and by how many, because that decides what a slice is worth.

    MIG is no strategy of its own: a changed MIG layout changes the pools of a flavor, not the flavor.
    """
    shared = next((supply for supply in supplies if supply.sharing), None)
    if shared is None:
        return "plain"
    return shared.sharing if shared.sharing == "vgpu" else f"{shared.sharing}-{shared.replicas}"
