"""The labels of GPU Feature Discovery (GFD): driver, cards, MIG instances, sharing.

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/lm.
"""

import re
import uuid
from collections import Counter

from deploy.local.fleet.mig_manager import NodeCards
from deploy.local.fleet.spec import Fleet, Kind, Sharing
from quotas.catalog.mig_tables import TABLES, Profile

Labels = dict[str, str]

GPU = "nvidia.com/gpu"
FAMILIES = {"Hopper": "hopper", "Ampere": "ampere", "Ada Lovelace": "ada-lovelace", "Turing": "turing"}
CLUSTERS = uuid.UUID("0c5a7b1e-91d4-5c0e-8f27-3d8e6f1f0b52")
# Suffixes of labels that only instances have. GFD removes them with the instance.
INSTANCE_SUFFIXES = ("multiprocessors", "slices.", "engines.")


def labels(fleet: Fleet, kind: Kind, node: str, cards: NodeCards) -> Labels:
    return (
        _version_labels(fleet)
        | _node_labels(fleet, kind)
        | _card_labels(kind, cards)
        | _instance_labels(kind, cards)
        | _vgpu_labels(kind)
        | _clique_labels(kind, node)
    )


def is_of_an_instance(label: str) -> bool:
    """Return whether a label describes MIG instances, and is removed with them."""
    return label.startswith(("nvidia.com/mig-", *(f"{GPU}.{suffix}" for suffix in INSTANCE_SUFFIXES)))


def sanitised(text: str) -> str:
    """Return a product or machine name as a label value: invalid characters dropped, blanks replaced by hyphens."""
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


def _node_labels(fleet: Fleet, kind: Kind) -> Labels:
    by_kind = kind.mig.strategy if kind.mig and kind.mig.managed else fleet.mig_strategy
    return {
        "nvidia.com/gfd.timestamp": str(fleet.gfd_timestamp),
        "nvidia.com/gpu.machine": sanitised(kind.machine),
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/mig.capable": str(bool(kind.card.mig_table)).lower(),
        "nvidia.com/mig.strategy": by_kind,
        "nvidia.com/mps.capable": str(kind.sharing is not None and kind.sharing.strategy == "mps").lower(),
    }


def _card_labels(kind: Kind, cards: NodeCards) -> Labels:
    """Return the labels of the cards themselves. With MIG on every card, sharing applies to the instances only."""
    card = kind.card
    compute_major, compute_minor = card.compute.split(".")
    shareable = any(layout is None for layout in cards.layouts)
    return _of_resource(GPU, sanitised(card.product), kind.gpus, kind.sharing, shareable) | {
        f"{GPU}.compute.major": compute_major,
        f"{GPU}.compute.minor": compute_minor,
        f"{GPU}.family": FAMILIES[card.architecture],
        f"{GPU}.memory": str(card.memory_mib),
    }


def _instance_labels(kind: Kind, cards: NodeCards) -> Labels:
    """Return the labels of the MIG instances: by profile with strategy `mixed`, instead of the card's with `single`."""
    enabled = [layout for layout in cards.layouts if layout is not None]
    counts: Counter[str] = Counter()
    for layout in enabled:
        counts.update(layout)
    if not enabled:
        return {}
    if kind.mig is None or kind.mig.strategy != "single":
        each = [_of_profile(kind, name, count, mixed=True) for name, count in counts.items()]
        return {key: value for of_profile in each for key, value in of_profile.items()}
    if is_uniform(cards):
        [(name, count)] = counts.items()
        return _of_profile(kind, name, count, mixed=False)
    return {
        f"{GPU}.product": f"{sanitised(kind.card.product)}-MIG-INVALID",
        f"{GPU}.count": "0",
        f"{GPU}.replicas": "0",
        f"{GPU}.sharing-strategy": "",
        f"{GPU}.memory": "0",
    }


def is_uniform(cards: NodeCards) -> bool:
    """Return whether all cards are divided into instances of one profile, as strategy `single` requires."""
    return all(cards.layouts) and len({name for layout in cards.layouts for name in layout or ()}) == 1


def _of_profile(kind: Kind, name: str, count: int, *, mixed: bool) -> Labels:
    profile = TABLES[kind.card.mig_table].profile(name)
    resource = profile.resource if mixed else GPU
    product = f"{sanitised(kind.card.product)}-MIG-{name.replace('+', '.')}"
    return _of_resource(resource, product, count, kind.sharing, shareable=True) | {
        f"{resource}.{suffix}": str(value) for suffix, value in _attributes(profile).items()
    }


def _of_resource(resource: str, product: str, count: int, sharing: Sharing | None, shareable: bool) -> Labels:
    """Return the labels of a resource. `replicas` is 0 if it cannot be shared; if it is shared without a new name, the
    product says so.
    """
    shared = sharing if shareable and sharing and sharing.resource == resource else None
    return {
        f"{resource}.product": product + ("-SHARED" if shared and not shared.rename else ""),
        f"{resource}.count": str(count),
        f"{resource}.replicas": str(shared.replicas if shared else int(shareable)),
        f"{resource}.sharing-strategy": shared.strategy if shared else "none",
    }


def _attributes(profile: Profile) -> dict[str, int]:
    """Return the labels of a profile, without engines for which there is no source."""
    attributes = {
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "slices.gi": profile.compute,
        "slices.ci": profile.compute,
        "engines.copy": profile.copy_engines,
        "engines.decoder": profile.decoders,
        "engines.encoder": profile.encoders,
        "engines.jpeg": profile.jpeg_engines,
        "engines.ofa": profile.ofa_engines,
    }
    return {suffix: value for suffix, value in attributes.items() if value is not None}


def _vgpu_labels(kind: Kind) -> Labels:
    if kind.vgpu is None:
        return {"nvidia.com/vgpu.present": "false"}
    return {
        "nvidia.com/vgpu.present": "true",
        "nvidia.com/vgpu.host-driver-version": kind.vgpu.host_driver,
        "nvidia.com/vgpu.host-driver-branch": kind.vgpu.host_branch,
    }


def _clique_labels(kind: Kind, node: str) -> Labels:
    """Return the label `<cluster>.<clique>`: neighbouring nodes are a clique, all cliques of a kind one NVLink
    cluster.
    """
    if not kind.clique:
        return {}
    index = int(node.rpartition("-")[2])
    return {f"{GPU}.clique": f"{uuid.uuid5(CLUSTERS, kind.name)}.{index // kind.clique}"}
