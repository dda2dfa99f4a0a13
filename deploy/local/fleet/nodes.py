"""A GPU node as kubelet registers it: labels, taint, capacity and allocatable."""

from collections import Counter
from typing import Any

from deploy.local.fleet import gfd, mig_manager
from deploy.local.fleet.labels import node_labels
from deploy.local.fleet.mig_manager import NodeCards
from deploy.local.fleet.quantities import of_gib
from deploy.local.fleet.spec import Fleet, Kind
from quotas.catalog.mig_tables import TABLES

Manifest = dict[str, Any]

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
# Marks the publisher's own objects, which it may delete. No component of NVIDIA reads it.
SIMULATED = "simulated-fleet.gpu-portal.io/kind"


def node(fleet: Fleet, kind: Kind, name: str, cards: NodeCards | None = None) -> Manifest:
    """Return the Node. `cards` are the MIG manager's; None for those of the fleet file."""
    cards = cards or mig_manager.initial(kind)
    annotations = {SIMULATED: kind.name}
    if kind.mig and kind.mig.managed:
        annotations[mig_manager.CARDS_ANNOTATION] = mig_manager.to_annotation(cards)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": node_labels(fleet, kind, name, cards), "annotations": annotations},
        "spec": {"taints": [TAINT]},
        "status": {
            "capacity": capacity(kind, cards),
            "allocatable": allocatable(fleet, kind, cards),
            "nodeInfo": node_info(fleet),
        },
    }


def capacity(kind: Kind, cards: NodeCards) -> dict[str, str]:
    return {
        "cpu": str(kind.cpu),
        "memory": of_gib(kind.memory_gib),
        "ephemeral-storage": of_gib(kind.disk_gib),
        "pods": "250",
    } | gpu_resources(kind, cards)


def allocatable(fleet: Fleet, kind: Kind, cards: NodeCards) -> dict[str, str]:
    """Return the allocatable resources; the GPUs are 0 while the device plugin is down, as in kubelet."""
    gpus = gpu_resources(kind, cards)
    return capacity(kind, cards) | {
        "cpu": str(kind.cpu - fleet.reserved_cpu),
        "memory": of_gib(kind.memory_gib - fleet.reserved_memory_gib),
        **(dict.fromkeys(gpus, "0") if cards.state == "pending" else gpus),
    }


def gpu_resources(kind: Kind, cards: NodeCards) -> dict[str, str]:
    """Return what the device plugin publishes: nothing on a DRA node, or each card would be allocated twice."""
    if kind.path == "dra":
        return {}
    advertised: Counter[str] = Counter()
    for resource, count in _devices(kind, cards).items():
        shared = kind.sharing if kind.sharing and kind.sharing.resource == resource else None
        name = f"{resource}.shared" if shared and shared.rename else resource
        advertised[name] += count * (shared.replicas if shared else 1)
    return {name: str(count) for name, count in advertised.items()}


def _devices(kind: Kind, cards: NodeCards) -> Counter[str]:
    """Return the number of devices by resource, before sharing. With strategy `single` the plugin publishes none if the
    cards differ.
    """
    devices: Counter[str] = Counter()
    if kind.mig and kind.mig.strategy == "single" and any(layout is not None for layout in cards.layouts):
        return Counter({gfd.GPU: sum(_instances(cards).values())} if gfd.is_uniform(cards) else {})
    devices[gfd.GPU] = sum(layout is None for layout in cards.layouts)
    for profile, count in _instances(cards).items():
        devices[TABLES[kind.card.mig_table].profile(profile).resource] += count
    return +devices


def _instances(cards: NodeCards) -> Counter[str]:
    counts: Counter[str] = Counter()
    for layout in cards.layouts:
        counts.update(layout or {})
    return counts


def node_info(fleet: Fleet) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": "",
        "containerRuntimeVersion": "containerd://2.2.1",
        "kernelVersion": "6.8.0-87-generic",
        "kubeProxyVersion": "",
        "kubeletVersion": fleet.kubelet_version,
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": "Ubuntu 24.04.3 LTS",
        "systemUUID": "",
    }
