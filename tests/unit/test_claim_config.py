"""The validation of NVIDIA's sharing configuration before a claim passes it to a node."""

import pytest

from allocations.claims import config
from allocations.claims.reading import Errors
from allocations.domain.allocation_spec import Sharing
from quotas.catalog import quantities


def wrong(document: object, device: str = "gpu", devices: int = config.MAX_DEVICES) -> dict[str, list[str]]:
    errors = Errors()
    config.read(document, "sharing", errors, device, devices)
    return errors.by_path


def right(document: object, device: str = "gpu", devices: int = config.MAX_DEVICES) -> Sharing:
    errors = Errors()
    found = config.read(document, "sharing", errors, device, devices)
    assert errors.by_path == {}
    return found


def test_builds_a_gpu_config_for_time_slicing():
    sharing = right({"strategy": "TimeSlicing", "interval": "Long"})
    assert config.opaque(sharing, "gpu", ["gpu"]) == {
        "requests": ["gpu"],
        "opaque": {
            "driver": "gpu.nvidia.com",
            "parameters": {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "GpuConfig",
                "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
            },
        },
    }


def test_builds_a_mig_config_for_mps_with_its_limits():
    sharing = right(
        {
            "strategy": "MPS",
            "active_thread_percentage": 50,
            "pinned_memory_limit": "10Gi",
            "per_device_pinned_memory_limit": {"0": "4Gi"},
        },
        "mig",
    )
    parameters = config.opaque(sharing, "mig")["opaque"]["parameters"]
    assert parameters["kind"] == "MigDeviceConfig"
    assert parameters["sharing"] == {
        "strategy": "MPS",
        "mpsConfig": {
            "defaultActiveThreadPercentage": 50,
            "defaultPinnedDeviceMemoryLimit": "10Gi",
            "defaultPerDevicePinnedMemoryLimit": {"0": "4Gi"},
        },
    }


def test_gives_back_what_was_given_and_nothing_else():
    given = {"strategy": "MPS", "active_thread_percentage": 0}
    assert right(given).to_json() == given


@pytest.mark.parametrize(
    ("document", "device", "field"),
    [
        ({}, "gpu", "sharing.strategy"),
        ({"strategy": "Fabric"}, "gpu", "sharing.strategy"),
        ({"strategy": "timeslicing"}, "gpu", "sharing.strategy"),
        ("TimeSlicing", "gpu", "sharing"),
        ({"strategy": "TimeSlicing", "replicas": 4}, "gpu", "sharing.replicas"),
        ({"strategy": "TimeSlicing", "interval": "long"}, "gpu", "sharing.interval"),
        ({"strategy": "TimeSlicing", "interval": "Long"}, "mig", "sharing.interval"),
        ({"strategy": "MPS", "interval": "Long"}, "gpu", "sharing.interval"),
        ({"strategy": "TimeSlicing", "active_thread_percentage": 50}, "gpu", "sharing.active_thread_percentage"),
        ({"strategy": "MPS", "active_thread_percentage": 101}, "gpu", "sharing.active_thread_percentage"),
        ({"strategy": "MPS", "active_thread_percentage": -1}, "gpu", "sharing.active_thread_percentage"),
        ({"strategy": "MPS", "active_thread_percentage": True}, "gpu", "sharing.active_thread_percentage"),
        ({"strategy": "MPS", "active_thread_percentage": "50"}, "gpu", "sharing.active_thread_percentage"),
        ({"strategy": "MPS", "pinned_memory_limit": "1000Ki"}, "gpu", "sharing.pinned_memory_limit"),
        ({"strategy": "MPS", "pinned_memory_limit": "ten"}, "gpu", "sharing.pinned_memory_limit"),
        ({"strategy": "MPS", "pinned_memory_limit": 2**30}, "gpu", "sharing.pinned_memory_limit"),
        (
            {"strategy": "MPS", "per_device_pinned_memory_limit": {"GPU-1": "1Gi"}},
            "gpu",
            "sharing.per_device_pinned_memory_limit[GPU-1]",
        ),
        (
            {"strategy": "MPS", "per_device_pinned_memory_limit": {"0": "1"}},
            "gpu",
            "sharing.per_device_pinned_memory_limit[0]",
        ),
    ],
)
def test_refuses_what_the_driver_would_refuse(document: object, device: str, field: str):
    assert list(wrong(document, device)) == [field]


def test_refuses_a_limit_for_a_device_that_the_claim_has_not():
    document = {"strategy": "MPS", "per_device_pinned_memory_limit": {"2": "1Gi"}}
    assert list(wrong(document, devices=2)) == ["sharing.per_device_pinned_memory_limit[2]"]
    assert right(document, devices=3).per_device_pinned_memory_limit == {"2": "1Gi"}


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("40Gi", 40 * 2**30), ("1.5k", 1500), ("1e3", 1000), ("2E", 2 * 10**18)]
)
def test_reads_amounts_as_kubernetes_does(text: str, number: int):
    assert quantities.value(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1KB", "0x10", "١", "1" * 50, "1e", "--1"])
def test_refuses_what_is_no_amount(text: str):
    with pytest.raises(ValueError, match=r"amount|unit"):
        quantities.value(text)
