"""What the simulated nodes say about themselves."""

from dataclasses import replace

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
    ],
)
def test_each_kind_advertises_its_slices_once(kind, resources):
    assert nodes.gpu_resources(KINDS[kind]) == resources


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


def test_shared_cards_under_their_own_name_keep_the_plain_product():
    labels = nodes.node(FLEET, KINDS["t4"], "t4-0")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "Tesla-T4"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
    assert labels["nvidia.com/gpu.replicas"] == "4"
    assert labels["nvidia.com/gpu.count"] == "4"


def test_shared_cards_under_the_plain_name_are_told_by_their_product():
    sharing = spec.Sharing(strategy="time-slicing", replicas=4, rename=False, config="time-sliced-4")
    plain = replace(KINDS["t4"], sharing=sharing)
    assert nodes.gpu_resources(plain) == {"nvidia.com/gpu": "16"}
    labels = nodes.node(FLEET, plain, "t4-0")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "Tesla-T4-SHARED"


def test_every_label_is_valid():
    for kind in FLEET.kinds:
        for key, value in nodes.node(FLEET, kind, f"{kind.name}-0")["metadata"]["labels"].items():
            assert len(key.rpartition("/")[2]) <= 63, key
            assert len(value) <= 63, key
            assert value.replace("-", "").replace(".", "").replace("_", "").isalnum(), key
