"""The labels of a GPU node, as kubelet, Node Feature Discovery and GPU Feature Discovery (GFD) write them.

Source of the GFD part: NVIDIA/k8s-device-plugin v0.20.0 internal/lm. `nvidia.com/gpu.clique` is missing on
purpose: no node here belongs to a multi-node NVLink domain.
"""

import re

from deploy.local.fleet import geometry
from deploy.local.fleet.spec import Card, Fleet, Kind

Labels = dict[str, str]

FAMILIES = {"Hopper": "hopper", "Ampere": "ampere", "Ada Lovelace": "ada-lovelace", "Turing": "turing"}


def node_labels(fleet: Fleet, kind: Kind, node: str) -> Labels:
    """Every label of one node; values are strings, as Kubernetes wants them."""
    labels = {
        "kubernetes.io/hostname": node,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": sanitised(kind.machine),
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": kind.zone,
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
    }
    return labels | _version_labels(fleet) | _gpu_labels(fleet, kind) | _mig_labels(kind) | _manager_labels(kind)


def sanitised(text: str) -> str:
    """GFD's form of a product or machine name: foreign characters dropped, blanks become hyphens."""
    return "-".join(re.sub(r"[^A-Za-z0-9-_. ]", "", text).split())


def _version_labels(fleet: Fleet) -> Labels:
    major, minor, revision = fleet.driver_version.split(".")
    cuda_major, cuda_minor = fleet.cuda_version.split(".")
    return {
        "nvidia.com/cuda.driver.major": major,
        "nvidia.com/cuda.driver.minor": minor,
        "nvidia.com/cuda.driver.rev": revision,
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver-version.full": fleet.driver_version,
        "nvidia.com/cuda.runtime.major": cuda_major,
        "nvidia.com/cuda.runtime.minor": cuda_minor,
        "nvidia.com/cuda.runtime-version.major": cuda_major,
        "nvidia.com/cuda.runtime-version.minor": cuda_minor,
        "nvidia.com/cuda.runtime-version.full": fleet.cuda_version,
    }


def _gpu_labels(fleet: Fleet, kind: Kind) -> Labels:
    card = kind.card
    compute_major, compute_minor = card.compute.split(".")
    return {
        "nvidia.com/gfd.timestamp": str(fleet.gfd_timestamp),
        "nvidia.com/gpu.compute.major": compute_major,
        "nvidia.com/gpu.compute.minor": compute_minor,
        "nvidia.com/gpu.count": str(kind.gpus),
        "nvidia.com/gpu.family": FAMILIES[card.architecture],
        "nvidia.com/gpu.machine": sanitised(kind.machine),
        "nvidia.com/gpu.memory": str(card.memory_mib),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.product": _product(kind),
        "nvidia.com/gpu.replicas": _replicas(kind),
        "nvidia.com/gpu.sharing-strategy": kind.sharing.strategy if kind.sharing else "none",
        "nvidia.com/mig.capable": str(bool(card.mig_table)).lower(),
        "nvidia.com/mig.strategy": fleet.mig_strategy,
        "nvidia.com/mps.capable": "false",
        "nvidia.com/vgpu.present": "false",
    }


def _product(kind: Kind) -> str:
    """Shared cards that keep the plain resource name are told apart by the product's suffix."""
    shared_under_plain_name = kind.sharing is not None and not kind.sharing.rename
    return sanitised(kind.card.product) + ("-SHARED" if shared_under_plain_name else "")


def _replicas(kind: Kind) -> str:
    """GFD says 0 for cards that are cut by MIG, since sharing then applies to the instances."""
    if kind.mig is not None and kind.mig.devices:
        return "0"
    return str(kind.sharing.replicas if kind.sharing else 1)


def _mig_labels(kind: Kind) -> Labels:
    if kind.mig is None or not kind.mig.devices:
        return {}
    labels: Labels = {}
    for name, per_card in kind.mig.devices.items():
        profile = geometry.profile(kind.card.mig_table, name)
        values = _profile_values(kind.card, profile) | {"count": per_card * kind.gpus}
        labels |= {f"{profile.resource}.{suffix}": str(value) for suffix, value in values.items()}
    return labels


def _profile_values(card: Card, profile: geometry.MigProfile) -> dict[str, str | int]:
    return {
        "product": f"{sanitised(card.product)}-MIG-{profile.name.replace('+', '.')}",
        "replicas": 1,
        "sharing-strategy": "none",
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "slices.gi": profile.slices,
        "slices.ci": profile.slices,
        "engines.copy": profile.copy_engines,
        "engines.decoder": profile.decoders,
        "engines.encoder": profile.encoders,
        "engines.jpeg": profile.jpeg_engines,
        "engines.ofa": profile.ofa_engines,
    }


def _manager_labels(kind: Kind) -> Labels:
    """What an administrator asked of the MIG manager and of the device plugin, and the manager's answer."""
    labels: Labels = {}
    if kind.mig is not None and kind.mig.config:
        labels |= {"nvidia.com/mig.config": kind.mig.config, "nvidia.com/mig.config.state": "success"}
    if kind.sharing:
        labels["nvidia.com/device-plugin.config"] = kind.sharing.config
    return labels
