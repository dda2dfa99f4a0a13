"""The claim of a hold: a request per slice, its chosen GPU, its constraints, and its sharing between pods."""

from dataclasses import replace
from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import claim_spec
from allocations.domain.allocation_spec import Constraints, Sharing
from tests.support import request_specs

MIG = replace(
    request_specs.WHOLE,
    offering="h100/mig-1g.10gb",
    kind="mig",
    count=2,
    device_class="mig.nvidia.com",
    selectors=("true",),
)
SHARES = replace(request_specs.WHOLE, offering="l40s/shared", kind="shared", count=2, capacity={"shares": "1"})
UUID = "GPU-e6542525-917b-59be-84e0-64ef5525029c"


def built(request: Any) -> dict[str, Any]:
    devices: dict[str, Any] = claim_spec.build(request, range(request.count))["devices"]
    return devices


def test_an_unsteered_slice_is_any_device_of_its_offering():
    assert built(replace(MIG, count=1)) == {
        "requests": [
            {
                "name": "slice-0",
                "exactly": {
                    "deviceClassName": "mig.nvidia.com",
                    "allocationMode": "ExactCount",
                    "count": 1,
                    "selectors": [{"cel": {"expression": "true"}}],
                },
            }
        ]
    }


def test_each_slice_is_steered_to_its_own_gpu():
    requests = built(replace(MIG, gpu_uuids=(UUID, "")))["requests"]
    assert [[s["cel"]["expression"] for s in r["exactly"]["selectors"]] for r in requests] == [
        [
            "true",
            '"parentUUID" in device.attributes["gpu.nvidia.com"] && '
            f'device.attributes["gpu.nvidia.com"].parentUUID == "{UUID}"',
        ],
        ["true"],
    ]


def test_what_a_claim_is_steered_to_can_be_read_from_it():
    raw = {"metadata": {"name": "train"}, "spec": claim_spec.build(replace(MIG, gpu_uuids=("", UUID)), range(2))}
    facts = KINDS["ResourceClaim"].projector(raw)
    assert facts is not None
    assert facts["cards"] == ["", UUID]


@pytest.mark.parametrize(
    ("request_", "constraints", "bound"),
    [
        (MIG, ("same_gpu",), [{"matchAttribute": "gpu.nvidia.com/parentUUID"}]),
        (MIG, ("distinct_gpus",), [{"distinctAttribute": "gpu.nvidia.com/parentUUID"}]),
        (SHARES, ("same_gpu",), [{"matchAttribute": "gpu.nvidia.com/uuid"}]),
        (SHARES, ("distinct_gpus",), [{"distinctAttribute": "gpu.nvidia.com/uuid"}]),
        (replace(request_specs.WHOLE, count=2), ("distinct_gpus",), None),
        (
            replace(request_specs.WHOLE, count=2),
            ("same_pcie_root",),
            [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
        ),
        (replace(MIG, count=1), ("same_gpu",), None),
        (MIG, ("same_clique",), None),
        (MIG, (), None),
    ],
)
def test_slices_are_bound_as_the_request_says(request_, constraints, bound):
    assert built(replace(request_, constraints=Constraints.named(constraints))).get("constraints") == bound


def test_a_share_takes_its_part_of_a_device():
    assert [r["exactly"]["capacity"] for r in built(SHARES)["requests"]] == [{"requests": {"shares": "1"}}] * 2


@pytest.mark.parametrize(
    ("request_", "sharing", "parameters"),
    [
        (
            request_specs.WHOLE,
            {"strategy": "TimeSlicing", "interval": "Long"},
            {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}},
        ),
        (MIG, {"strategy": "TimeSlicing"}, {"kind": "MigDeviceConfig", "sharing": {"strategy": "TimeSlicing"}}),
        (
            request_specs.WHOLE,
            {
                "strategy": "MPS",
                "active_thread_percentage": 50,
                "pinned_memory_limit": "10Gi",
                "per_device_pinned_memory_limit": {"0": "8Gi"},
            },
            {
                "kind": "GpuConfig",
                "sharing": {
                    "strategy": "MPS",
                    "mpsConfig": {
                        "defaultActiveThreadPercentage": 50,
                        "defaultPinnedDeviceMemoryLimit": "10Gi",
                        "defaultPerDevicePinnedMemoryLimit": {"0": "8Gi"},
                    },
                },
            },
        ),
    ],
)
def test_pods_share_its_devices_as_the_driver_reads_it(request_, sharing, parameters):
    (config,) = built(replace(request_, sharing=Sharing(**sharing)))["config"]
    assert config == {
        "opaque": {
            "driver": "gpu.nvidia.com",
            "parameters": {"apiVersion": "resource.nvidia.com/v1beta1", **parameters},
        }
    }


def test_shares_of_one_device_are_told_apart():
    given = {"request": "slice-0", "driver": "gpu.nvidia.com", "pool": "l40s-0", "device": "gpu-0"}
    results = [{**given, "shareID": "a", "consumedCapacity": {"shares": "1"}}, {**given, "adminAccess": True}]
    raw = {"metadata": {"name": "x"}, "spec": {}, "status": {"allocation": {"devices": {"results": results}}}}
    facts = KINDS["ResourceClaim"].projector(raw)
    assert facts is not None
    assert facts["devices"] == [{**given, "share": "a", "consumed": {"shares": "1"}}]
