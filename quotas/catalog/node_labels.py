"""Reads the labels that GPU feature discovery writes on a node. Pure.

`nvidia.com/<resource>.count` counts the GPUs, or with MIG by strategy `single` the MIG devices, of the node;
`.replicas` is by how many each is shared, 0 or 1 if it is not. With `mixed` each MIG profile has both of its own.
Source: NVIDIA k8s-device-plugin, docs/gpu-feature-discovery/README.md, internal/lm.
"""

import re
from collections.abc import Mapping

from quotas.catalog.geometry import profile_of_resource

PREFIX = "nvidia.com/"
SHARED = ".shared"
PRODUCT_LABEL = "nvidia.com/gpu.product"
COUNT_LABEL = "nvidia.com/gpu.count"
MEMORY_LABEL = "nvidia.com/gpu.memory"
SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"
PRESENT_LABEL = "nvidia.com/gpu.present"
STATE_LABEL = "nvidia.com/mig.config.state"
SHARED_PRODUCT = "-SHARED"
INSTANCES_LABEL = "nvidia.com/gpu.slices.gi"
"""Only of MIG devices by strategy `single`: how many compute slices each has."""
MAX_DIGITS = 9
_MIG_COUNT = re.compile(r"nvidia\.com/(mig-.+)\.count")
_SHARING = {"time-slicing", "mps"}

Labels = Mapping[str, str]


def number(labels: Labels, label: str) -> int:
    """Return the number that a label says; 0 without one."""
    return known_number(labels, label) or 0


def known_number(labels: Labels, label: str) -> int | None:
    """Return the number that a label says; None without one, or if there cannot be so many."""
    value = labels.get(label, "")
    return int(value) if value.isdecimal() and len(value) <= MAX_DIGITS else None


def model(product: str) -> str:
    """Return the GPU's own part of a product label, without MIG profile and sharing."""
    return product.removesuffix(SHARED_PRODUCT).partition("-MIG-")[0]


def single_profile(labels: Labels) -> str:
    """Return the profile of MIG by strategy `single`, which the product label names; "" without it. Raises ValueError
    for a name that is no profile.
    """
    _, mig, profile = labels.get(PRODUCT_LABEL, "").removesuffix(SHARED_PRODUCT).partition("-MIG-")
    return profile_of_resource(profile) if mig else ""


def is_single(labels: Labels) -> bool:
    """Return whether the labels describe MIG devices by strategy `single`, and not their GPUs."""
    return "-MIG-" in labels.get(PRODUCT_LABEL, "")


def gpu_memory(labels: Labels) -> int:
    """Return the MiB of one GPU; 0 if the labels do not say it. By strategy `single` they have a MIG device's own."""
    return 0 if is_single(labels) else number(labels, MEMORY_LABEL)


def base_of(resource: str) -> str:
    """Return what the labels call a resource: `gpu` of `nvidia.com/gpu.shared`."""
    return resource.removeprefix(PREFIX).removesuffix(SHARED)


def is_gpu(resource: str) -> bool:
    """Return whether a resource is GPUs or parts of them. The kubelet keeps one that is gone, with the amount 0."""
    base = base_of(resource)
    return resource.startswith(PREFIX) and (base == "gpu" or base.startswith("mig-"))


def replicas(labels: Labels, base: str) -> int:
    """Return by how many a resource (`gpu`, `mig-1g.10gb`) is shared; 1 if it is not."""
    return number(labels, f"{PREFIX}{base}.replicas") or 1


def is_shared(labels: Labels, base: str) -> bool:
    """Return whether labels other than that of replicas say that units of a resource are shares."""
    product = labels.get(f"{PREFIX}{base}.product", "")
    return product.endswith(SHARED_PRODUCT) or labels.get(f"{PREFIX}{base}.sharing-strategy", "") not in ("", "none")


def sharing(labels: Labels, base: str) -> str:
    """Return the strategy by which a shared resource is shared."""
    strategy = labels.get(f"{PREFIX}{base}.sharing-strategy") or labels.get(SHARING_LABEL, "")
    return strategy if strategy in _SHARING else "time-slicing"


def mig_counts(labels: Labels) -> dict[str, int]:
    """Return how many MIG devices the labels of strategy `mixed` count, by the base of their resource."""
    matches = {match[1]: label for label in labels if (match := _MIG_COUNT.fullmatch(label))}
    return {base: number(labels, label) for base, label in sorted(matches.items())}


def shows_gpus(labels: Labels) -> bool:
    """Return whether the labels say that the node has GPUs."""
    return bool(labels.get(PRODUCT_LABEL)) or labels.get(PRESENT_LABEL) == "true" or number(labels, COUNT_LABEL) > 0
