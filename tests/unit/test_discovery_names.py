"""Short names of flavors."""

import pytest

from quotas.catalog.shortnames import assign, short_name
from quotas.catalog.types import Identity


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("NVIDIA-H100-PCIe", "h100"),
        ("NVIDIA-H100-NVL", "h100-nvl"),
        ("NVIDIA-H200", "h200"),
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "a100"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-L40S-SHARED", "l40s"),
        ("Tesla-T4", "t4"),
        ("Tesla-V100-SXM2-32GB", "v100"),
        ("NVIDIA-RTX-6000-Ada-Generation", "rtx-6000-ada"),
        ("NVIDIA", "gpu"),
    ],
)
def test_short_name_is_the_model(product, name):
    assert short_name(product) == name


def test_a_name_taken_gets_memory_then_the_product_then_a_number():
    found = [
        (Identity(product, path, "plain"), memory)
        for product, path, memory in [
            ("NVIDIA-A100-SXM4-40GB", "dra", 40960),
            ("NVIDIA-A100-SXM4-80GB", "device-plugin", 81920),
            ("NVIDIA-A100-SXM4-80GB", "dra", 81920),
            ("NVIDIA-A100-SXM4-80GB", "other", 81920),
        ]
    ]
    assert list(assign(found, {}, ()).values()) == ["a100", "a100-80gb", "nvidia-a100-sxm4-80gb", "a100-2"]


def test_names_leave_room_for_the_prefix_of_their_priority_class():
    names = assign([(Identity("x" * 63, path, "plain"), 999999) for path in "abcd"], {}, ()).values()
    assert all(len(f"gpu-portal-hold-{name}") <= 63 for name in names)
    assert len(set(names)) == 4


def test_without_a_memory_label_the_product_comes_next():
    assert list(assign([(Identity("NVIDIA-L4", "dra", "plain"), 0)], {}, {"l4"}).values()) == ["nvidia-l4"]
