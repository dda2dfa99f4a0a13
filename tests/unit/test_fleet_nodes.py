"""Labels and capacity of the simulated nodes."""

import pytest

from deploy.local.fleet import nodes, spec

FLEET = spec.load(spec.FLEET_FILE)
KINDS = {kind.name: kind for kind in FLEET.kinds}

GFD_LABELS_OF_EVERY_NODE = {
    "nvidia.com/cuda.driver.major": "580",
    "nvidia.com/cuda.driver.minor": "126",
    "nvidia.com/cuda.driver.rev": "20",
    "nvidia.com/cuda.driver-version.major": "580",
    "nvidia.com/cuda.driver-version.minor": "126",
    "nvidia.com/cuda.driver-version.revision": "20",
    "nvidia.com/cuda.driver-version.full": "580.126.20",
    "nvidia.com/cuda.runtime.major": "13",
    "nvidia.com/cuda.runtime.minor": "0",
    "nvidia.com/cuda.runtime-version.major": "13",
    "nvidia.com/cuda.runtime-version.minor": "0",
    "nvidia.com/cuda.runtime-version.full": "13.0",
    "nvidia.com/gfd.timestamp": "1762070400",
    "nvidia.com/gpu.mode": "compute",
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/mps.capable": "false",
    "nvidia.com/vgpu.present": "false",
}


def test_l40s_node_is_exactly_what_kubelet_nfd_and_gfd_would_write():
    assert nodes.node(FLEET, KINDS["l40s"], "l40s-1") == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "l40s-1",
            "labels": GFD_LABELS_OF_EVERY_NODE
            | {
                "kubernetes.io/hostname": "l40s-1",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "OVX-L40S-4",
                "topology.kubernetes.io/region": "local",
                "topology.kubernetes.io/zone": "hall-b",
                "feature.node.kubernetes.io/pci-10de.present": "true",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.compute.major": "8",
                "nvidia.com/gpu.compute.minor": "9",
                "nvidia.com/gpu.count": "4",
                "nvidia.com/gpu.family": "ada-lovelace",
                "nvidia.com/gpu.machine": "OVX-L40S-4",
                "nvidia.com/gpu.memory": "46068",
                "nvidia.com/gpu.product": "NVIDIA-L40S",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/gpu.sharing-strategy": "none",
                "nvidia.com/mig.capable": "false",
                "nvidia.com/gpu.deploy.device-plugin": "true",
                "nvidia.com/device-plugin.config": "unshared",
            },
            "annotations": {"simulated-fleet.gpu-portal.io/kind": "l40s"},
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {
                "cpu": "64",
                "memory": "512Gi",
                "ephemeral-storage": "3500Gi",
                "pods": "250",
                "nvidia.com/gpu": "4",
            },
            "allocatable": {
                "cpu": "62",
                "memory": "504Gi",
                "ephemeral-storage": "3500Gi",
                "pods": "250",
                "nvidia.com/gpu": "4",
            },
            "nodeInfo": nodes.node_info(FLEET),
        },
    }


@pytest.mark.parametrize(
    ("kind", "resources"),
    [
        ("h100", {}),
        (
            "a100",
            {"nvidia.com/mig-1g.10gb": "16", "nvidia.com/mig-2g.20gb": "8", "nvidia.com/mig-3g.40gb": "8"},
        ),
        ("l40s", {"nvidia.com/gpu": "4"}),
        ("t4", {"nvidia.com/gpu.shared": "16"}),
        ("h200", {}),
        ("a100-static", {}),
        ("l40s-shares", {}),
        ("a10-dra", {}),
        ("a30-single", {"nvidia.com/gpu": "16"}),
        ("a100-shared", {"nvidia.com/mig-1g.10gb.shared": "56"}),
        ("t4-plain", {"nvidia.com/gpu": "16"}),
        ("l4-mps", {"nvidia.com/gpu": "16"}),
        ("a40-vgpu", {"nvidia.com/gpu": "2"}),
    ],
)
def test_each_kind_advertises_its_slices_once(kind, resources):
    status = nodes.node(FLEET, KINDS[kind], f"{kind}-0")["status"]
    for part in ("capacity", "allocatable"):
        assert {name: count for name, count in status[part].items() if name.startswith("nvidia.com/")} == resources


def gpu_labels(kind: str, node: str = "") -> dict[str, str]:
    """Return the labels `nvidia.com/gpu.*` in which kinds differ, without their prefix."""
    labels = nodes.node(FLEET, KINDS[kind], node or f"{kind}-0")["metadata"]["labels"]
    names = ("product", "count", "replicas", "sharing-strategy", "memory", "clique")
    return {name: labels[f"nvidia.com/gpu.{name}"] for name in names if f"nvidia.com/gpu.{name}" in labels}


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("t4", ("Tesla-T4", "4", "4", "time-slicing", "15360")),
        ("t4-plain", ("Tesla-T4-SHARED", "4", "4", "time-slicing", "15360")),
        ("l4-mps", ("NVIDIA-L4-SHARED", "4", "4", "mps", "23034")),
        ("a30-single", ("NVIDIA-A30-MIG-1g.6gb", "16", "1", "none", "5836")),
        ("a100-shared", ("NVIDIA-A100-SXM4-80GB", "4", "0", "none", "81920")),
        ("a100-static", ("NVIDIA-A100-SXM4-80GB", "8", "0", "none", "81920")),
        ("a40-vgpu", ("NVIDIA-A40-12Q", "2", "1", "none", "12288")),
        ("l40s-shares", ("NVIDIA-L40S", "4", "1", "none", "46068")),
        ("a10-dra", ("NVIDIA-A10", "4", "1", "none", "23028")),
    ],
)
def test_labels_of_a_node_tell_how_its_cards_are_divided(kind, labels):
    assert tuple(gpu_labels(kind).values()) == labels


def test_by_strategy_single_the_card_s_labels_are_those_of_its_instances():
    labels = nodes.node(FLEET, KINDS["a30-single"], "a30-single-0")["metadata"]["labels"]
    assert labels["nvidia.com/mig.strategy"] == "single"
    assert labels["nvidia.com/gpu.slices.gi"] == labels["nvidia.com/gpu.slices.ci"] == "1"
    assert labels["nvidia.com/gpu.multiprocessors"] == "14"
    assert labels["nvidia.com/gpu.family"] == "ampere"
    assert not [key for key in labels if key.startswith("nvidia.com/mig-")]


def test_shared_instances_say_so_and_their_cards_do_not():
    labels = nodes.node(FLEET, KINDS["a100-shared"], "a100-shared-0")["metadata"]["labels"]
    assert labels["nvidia.com/mig-1g.10gb.count"] == "28"
    assert labels["nvidia.com/mig-1g.10gb.replicas"] == "2"
    assert labels["nvidia.com/mig-1g.10gb.sharing-strategy"] == "time-slicing"
    assert labels["nvidia.com/mig-1g.10gb.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"
    assert labels["nvidia.com/device-plugin.config"] == "mig-time-sliced-2"


def test_only_the_node_with_mps_is_capable_of_it():
    capable = {
        name
        for name, kind in KINDS.items()
        if nodes.node(FLEET, kind, f"{name}-0")["metadata"]["labels"]["nvidia.com/mps.capable"] == "true"
    }
    assert capable == {"l4-mps"}


def test_a_virtual_gpu_names_the_driver_of_its_host():
    labels = nodes.node(FLEET, KINDS["a40-vgpu"], "a40-vgpu-0")["metadata"]["labels"]
    assert {key: value for key, value in labels.items() if "vgpu" in key and "hostname" not in key} == {
        "nvidia.com/vgpu.present": "true",
        "nvidia.com/vgpu.host-driver-version": "580.126.08",
        "nvidia.com/vgpu.host-driver-branch": "r580_00",
    }


def test_neighbouring_nodes_form_an_nvlink_clique():
    cliques = [gpu_labels("h200", f"h200-{index}")["clique"] for index in range(4)]
    assert cliques[0] == cliques[1] != cliques[2] == cliques[3]
    assert {len(clique.rpartition(".")[0]) for clique in cliques} == {36}
    assert "clique" not in gpu_labels("h100")


def test_mig_node_describes_each_of_its_profiles():
    labels = nodes.node(FLEET, KINDS["a100"], "a100-0")["metadata"]["labels"]
    assert {key: value for key, value in labels.items() if "mig-3g.40gb" in key} == {
        "nvidia.com/mig-3g.40gb.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb",
        "nvidia.com/mig-3g.40gb.count": "8",
        "nvidia.com/mig-3g.40gb.replicas": "1",
        "nvidia.com/mig-3g.40gb.sharing-strategy": "none",
        "nvidia.com/mig-3g.40gb.memory": "40192",
        "nvidia.com/mig-3g.40gb.multiprocessors": "42",
        "nvidia.com/mig-3g.40gb.slices.gi": "3",
        "nvidia.com/mig-3g.40gb.slices.ci": "3",
        "nvidia.com/mig-3g.40gb.engines.copy": "3",
        "nvidia.com/mig-3g.40gb.engines.decoder": "2",
        "nvidia.com/mig-3g.40gb.engines.encoder": "0",
        "nvidia.com/mig-3g.40gb.engines.jpeg": "0",
        "nvidia.com/mig-3g.40gb.engines.ofa": "0",
    }
    assert labels["nvidia.com/gpu.replicas"] == "0"
    assert labels["nvidia.com/mig.config"] == "all-balanced"
    assert labels["nvidia.com/mig.config.state"] == "success"


def test_every_label_is_valid():
    for kind in FLEET.kinds:
        for key, value in nodes.node(FLEET, kind, f"{kind.name}-0")["metadata"]["labels"].items():
            assert len(key.rpartition("/")[2]) <= 63, key
            assert len(value) <= 63, key
            assert value.replace("-", "").replace(".", "").replace("_", "").isalnum(), key
