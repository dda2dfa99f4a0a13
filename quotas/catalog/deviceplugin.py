"""Reads what NVIDIA's device plugin offers on a node: counts of extended resources.

The plugin publishes `nvidia.com/gpu`, `nvidia.com/mig-<profile>` and, for time-slicing or MPS with `renameByDefault`,
the same with `.shared`; without it only the labels show that. In a virtual machine the GPU is a vGPU: it has its own
memory, and takes turns on a GPU that other machines use. What the labels contradict is not offered
(`label_agreement`). Source: NVIDIA k8s-device-plugin, api/config/v1.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from quotas.catalog import label_agreement, node_labels, storable
from quotas.catalog.geometry import (
    HOW_TO_SET,
    UnknownDivision,
    gpu_share,
    gpu_slices,
    memory_part,
    profile_of_resource,
    profile_slices,
)
from quotas.catalog.mig_tables import geometry_of
from quotas.catalog.node_labels import COUNT_LABEL, PREFIX, PRODUCT_LABEL
from quotas.catalog.types import NodeFact, Reading, Supply

INVALID = "-MIG-INVALID"
BROKEN = (
    "MIG is broken here (label nvidia.com/gpu.product ends in MIG-INVALID), so not offered: strategy single needs "
    "slices of one profile on every GPU. Set such a layout (nvidia.com/mig.config=all-1g.10gb), or strategy mixed"
)


def read(node: NodeFact) -> Reading | None:
    """Return what the device plugin supplies on a node, or None if it publishes nothing there."""
    if node.labels.get(PRODUCT_LABEL, "").endswith(INVALID):
        return Reading("device-plugin", "plain", (), problems=(BROKEN,))
    names = sorted(name for name, amount in node.capacity.items() if amount > 0 and name.startswith(PREFIX))
    supplies, problems, has_unknown_division = [], [], False
    for name in names:
        try:
            supply = _supply(name, node)
        except UnknownDivision as error:
            problems.append(f"{error}, so its {name} is not offered; {HOW_TO_SET}")
            has_unknown_division = True
            continue
        except ValueError as error:
            problems.append(str(error))
            continue
        if supply:
            supplies.append(supply)
    kept, odd = storable.supplies(supplies)
    problems += odd
    if not kept and not problems:
        return None
    found = label_agreement.check(node.labels, kept, node.gpu_memory_mib)
    problems += [*found.problems, *_unhealthy(found.offered)]
    return Reading(
        "device-plugin",
        _strategy(found.offered),
        found.offered,
        problems=tuple(problems),
        withheld=found.withheld,
        has_unknown_division=has_unknown_division,
    )


def _unhealthy(supplies: Iterable[Supply]) -> Iterator[str]:
    for one in supplies:
        if one.usable < one.max_usable:
            yield (
                f"{one.usable} of {one.max_usable} {one.resource} are healthy, and so allocatable; the log of the "
                "device plugin says why"
            )


def _supply(name: str, node: NodeFact) -> Supply | None:
    """Return the supply of a resource name; None if it is no GPU (`nvidia.com/hostdev`). Its replicas are 0 if it is
    shared and no label says by how many. Raises ValueError if it is unclear.
    """
    if not node_labels.is_gpu(name):
        return None
    suffix, base, labels = name.removeprefix(PREFIX), node_labels.base_of(name), node.labels
    profile = profile_of_resource(base.removeprefix("mig-")) if base != "gpu" else node_labels.single_profile(labels)
    share, part = _mig_parts(profile, name, node) if profile else (Fraction(1), Fraction(1))
    is_virtual = labels.get("nvidia.com/vgpu.present") == "true"
    supply = Supply(
        pool=suffix,
        unit={name: 1},
        consumes={name: 1},
        kind="mig" if profile else "whole",
        profile=profile,
        isolation="none" if is_virtual else "hardware" if profile else "full",
        gpu_share=share,
        memory_part=part,
        usable=min(node.allocatable.get(name, 0), node.capacity[name]),
        max_usable=node.capacity[name],
        resource=name,
        sharing="vgpu" if is_virtual else "",
        memory_mib=_memory(base, profile, node),
    )
    replicas = node_labels.replicas(labels, base)
    if suffix == base and replicas <= 1 and not node_labels.is_shared(labels, base):
        return supply
    known = replicas if replicas > 1 else 0
    return replace(
        supply,
        kind="shared",
        isolation="none",
        gpu_share=supply.gpu_share / (known or 1),
        memory_part=supply.memory_part / (known or 1),
        sharing=node_labels.sharing(labels, base),
        replicas=known,
    )


def _mig_parts(profile: str, name: str, node: NodeFact) -> tuple[Fraction, Fraction]:
    """Return the parts of its GPU and of its memory that a MIG device is. Raises UnknownDivision."""
    product = node.labels.get(PRODUCT_LABEL, "")
    try:
        slices, gpu = profile_slices(product, profile, node.gpu_memory_mib), gpu_slices(product)
        return gpu_share(slices, gpu), memory_part(slices, gpu)
    except UnknownDivision:
        number = _number_on_each_gpu(name, node)
        if not number:
            raise
        return Fraction(1, number), Fraction(1, number)


def _number_on_each_gpu(name: str, node: NodeFact) -> int:
    """Return how many devices of a profile each GPU of the node has; 0 if not all GPUs are divided into this profile
    alone, so that their number does not tell it.
    """
    others = [
        other for other, amount in node.capacity.items() if node_labels.is_gpu(other) and amount and other != name
    ]
    count = 0 if node_labels.is_single(node.labels) else node_labels.number(node.labels, COUNT_LABEL)
    devices = Fraction(node.capacity[name], node_labels.replicas(node.labels, node_labels.base_of(name)))
    return int(devices / count) if count and not others and (devices / count).denominator == 1 else 0


def _memory(base: str, profile: str, node: NodeFact) -> int:
    """Return the MiB of one GPU or instance, as labelled, else by the product's table; 0 if neither has it."""
    labelled = node_labels.number(node.labels, f"{PREFIX}{base}.memory")
    if labelled or not profile:
        return labelled
    known = geometry_of(node.labels.get(PRODUCT_LABEL, ""), node.gpu_memory_mib, profile)
    return known.profile(profile).memory_mib if known else 0


def _strategy(supplies: Sequence[Supply]) -> str:
    """Return `plain`, or how GPUs are shared and by how many, because that decides what a slice is worth.

    MIG is no strategy of its own: a changed MIG layout changes the pools of a flavor, not the flavor.
    """
    shared = next((supply for supply in supplies if supply.sharing), None)
    if shared is None:
        return "plain"
    return shared.sharing if shared.sharing == "vgpu" else f"{shared.sharing}-{shared.replicas}"
