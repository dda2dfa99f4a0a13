"""The labels of a GPU node: from kubelet, Node Feature Discovery, GFD, and its administrator."""

from deploy.local.fleet import gfd, mig_manager
from deploy.local.fleet.mig_manager import NodeCards
from deploy.local.fleet.spec import Fleet, Kind

Labels = dict[str, str]

DEVICE_PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
DEVICE_PLUGIN_DEPLOYED = "nvidia.com/gpu.deploy.device-plugin"
# Set on a new node; after that the administrator's, and never repaired.
ADMINISTRATORS_LABELS = frozenset({mig_manager.CONFIG, DEVICE_PLUGIN_CONFIG})
# Components that the MIG manager stops during a change. Only the label of the first is read by others.
GPU_CLIENTS = ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm")


def node_labels(fleet: Fleet, kind: Kind, node: str, cards: NodeCards) -> Labels:
    """Return all labels of a node; values are strings, as Kubernetes requires."""
    return {
        "kubernetes.io/hostname": node,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": gfd.sanitised(kind.machine),
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": kind.zone,
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
        **gfd.labels(fleet, kind, node, cards),
        **_manager_labels(kind, cards),
    }


def _manager_labels(kind: Kind, cards: NodeCards) -> Labels:
    """Return the labels by which an administrator configures MIG manager and device plugin, and the manager's answer.

    Where the DRA driver manages the cards, the GPU operator deploys no device plugin, and sets a label.
    """
    has_plugin = kind.path == "device-plugin"
    labels: Labels = {DEVICE_PLUGIN_DEPLOYED: str(has_plugin).lower()}
    if has_plugin:
        labels[DEVICE_PLUGIN_CONFIG] = kind.sharing.config if kind.sharing else "unshared"
    if kind.mig is None or not kind.mig.managed:
        return labels
    deployed = "paused-for-mig-change" if cards.state == "pending" else "true"
    return labels | {
        mig_manager.CONFIG: kind.mig.config,
        mig_manager.STATE: cards.state,
        **{f"nvidia.com/gpu.deploy.{client}": deployed for client in GPU_CLIENTS},
    }
