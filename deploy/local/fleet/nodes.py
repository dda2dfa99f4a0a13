"""A GPU node as kubelet registers it: labels, taint, capacity and allocatable."""

from typing import Any

from deploy.local.fleet import geometry
from deploy.local.fleet.labels import node_labels
from deploy.local.fleet.quantities import of_gib
from deploy.local.fleet.spec import Fleet, Kind

Manifest = dict[str, Any]

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
# Marks what the publisher made and may therefore remove again. No component of NVIDIA's reads it.
SIMULATED = "simulated-fleet.gpu-portal.io/kind"


def node(fleet: Fleet, kind: Kind, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": node_labels(fleet, kind, name),
            "annotations": {SIMULATED: kind.name},
        },
        "spec": {"taints": [TAINT]},
        "status": {
            "capacity": capacity(kind),
            "allocatable": allocatable(fleet, kind),
            "nodeInfo": node_info(fleet),
        },
    }


def capacity(kind: Kind) -> dict[str, str]:
    return {
        "cpu": str(kind.cpu),
        "memory": of_gib(kind.memory_gib),
        "ephemeral-storage": of_gib(kind.disk_gib),
        "pods": "250",
    } | gpu_resources(kind)


def allocatable(fleet: Fleet, kind: Kind) -> dict[str, str]:
    return capacity(kind) | {
        "cpu": str(kind.cpu - fleet.reserved_cpu),
        "memory": of_gib(kind.memory_gib - fleet.reserved_memory_gib),
    }


def gpu_resources(kind: Kind) -> dict[str, str]:
    """What the device plugin advertises: nothing on a DRA node, or every card would be handed out twice."""
    if kind.path == "dra":
        return {}
    if kind.mig is not None and kind.mig.devices:
        table = kind.card.mig_table
        return {geometry.profile(table, p).resource: str(n * kind.gpus) for p, n in kind.mig.devices.items()}
    if kind.sharing:
        name = "nvidia.com/gpu.shared" if kind.sharing.rename else "nvidia.com/gpu"
        return {name: str(kind.gpus * kind.sharing.replicas)}
    return {"nvidia.com/gpu": str(kind.gpus)}


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
