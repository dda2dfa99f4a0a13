"""What a node gives by NVIDIA's device plugin: counts of resource names.

The plugin publishes `nvidia.com/gpu`, `nvidia.com/mig-<profile>` and, for time-slicing or MPS with
`renameByDefault`, the same with `.shared`. Labels come from GPU feature discovery. Sources: NVIDIA
k8s-device-plugin, api/config/v1 and docs/gpu-feature-discovery/README.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from quotas.catalog.facts import NodeFact, Reading, Supply
from quotas.catalog.geometry import card_slices, gpu_share, profile_of_resource, profile_slices

PREFIX = "nvidia.com/"
SHARED = ".shared"
SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"


def read(node: NodeFact) -> Reading | None:
    """Supplies of a node, or None when the device plugin publishes nothing there."""
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
    if not supplies and not problems:
        return None
    return Reading("device-plugin", _strategy(supplies, node.labels), tuple(supplies), problems=tuple(problems))


def _supply(name: str, node: NodeFact) -> Supply | None:
    """The supply behind a resource name; None when it is no GPU (`nvidia.com/hostdev`), ValueError when it
    is unclear.
    """
    suffix = name.removeprefix(PREFIX)
    base = suffix.removesuffix(SHARED)
    if base != "gpu" and not base.startswith("mig-"):
        return None
    profile = _profile(base, node.labels)
    supply = Supply(
        pool=suffix,
        unit={name: 1},
        kind="mig" if profile else "whole",
        profile=profile,
        isolation="hardware" if profile else "full",
        gpu_share=_mig_share(profile, node.labels) if profile else Fraction(1),
        usable=min(node.allocatable.get(name, 0), node.capacity[name]),
        most=node.capacity[name],
        resource=name,
    )
    if suffix == base and (base != "gpu" or _replicas("gpu", node.labels) <= 1):
        return supply
    replicas = _replicas(base, node.labels)
    if replicas <= 1:
        raise ValueError(
            f"{name} is shared, but the label {PREFIX}{base}.replicas does not say by how many; "
            "GPU feature discovery writes it"
        )
    return replace(supply, kind="shared", isolation="none", gpu_share=supply.gpu_share / replicas)


def _profile(base: str, labels: Mapping[str, str]) -> str:
    """MIG profile of a resource; by strategy `single` the resource is `gpu` and the product label names the
    profile.
    """
    if base.startswith("mig-"):
        return profile_of_resource(base.removeprefix("mig-"))
    _, mig, profile = labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED").partition("-MIG-")
    return profile_of_resource(profile) if mig else ""


def _mig_share(profile: str, labels: Mapping[str, str]) -> Fraction:
    product = labels.get("nvidia.com/gpu.product", "")
    card = card_slices(product)
    # By strategy `single` the memory label is the slice's own, and says nothing of the card.
    memory = 0 if "-MIG-" in product else int(labels.get("nvidia.com/gpu.memory", "0"))
    return gpu_share(profile_slices(profile, card, memory), card)


def _replicas(base: str, labels: Mapping[str, str]) -> int:
    return int(labels.get(f"{PREFIX}{base}.replicas", "1") or "1")


def _strategy(supplies: list[Supply], labels: Mapping[str, str]) -> str:
    """`plain`, or how cards are shared and by how many, because that decides what a slice is worth.

    MIG is no strategy of its own: a changed MIG layout changes the pools of a flavor, not the flavor.
    """
    shared = [supply for supply in supplies if supply.kind == "shared"]
    if not shared:
        return "plain"
    base = shared[0].pool.removesuffix(SHARED)
    sharing = labels.get(f"{PREFIX}{base}.sharing-strategy") or labels.get(SHARING_LABEL) or "shared"
    return f"{sharing}-{_replicas(base, labels)}"
