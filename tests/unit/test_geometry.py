"""MIG geometry against NVIDIA's tables (MIG user guide; nvidia-smi mig -lgip)."""

from fractions import Fraction

import pytest

from quotas.catalog.geometry import (
    SEVEN_SLICES,
    Slices,
    UnknownDivision,
    compute_slices,
    gpu_share,
    gpu_slices,
    instances_per_gpu,
    profile_of_resource,
    profile_slices,
)
from quotas.catalog.mig_tables import TABLES

UNLISTED = "NVIDIA-X100"
FOUR_SLICES = Slices(4, 4)
A100_40, A100_80, H100, H100_NVL, H200, B200, A30 = 40960, 81920, 81559, 95830, 143771, 183359, 24576


@pytest.mark.parametrize(
    ("profile", "memory_mib", "taken"),
    [
        ("1g.5gb", A100_40, Slices(1, 1)),
        ("1g.10gb", A100_40, Slices(1, 2)),
        ("3g.20gb", A100_40, Slices(3, 4)),
        ("1g.10gb", A100_80, Slices(1, 1)),
        ("1g.10gb+me", A100_80, Slices(1, 1)),
        ("1g.20gb", A100_80, Slices(1, 2)),
        ("7g.80gb", A100_80, Slices(7, 8)),
        ("1g.10gb", H100, Slices(1, 1)),
        ("2g.20gb", H100, Slices(2, 2)),
        ("3g.40gb", H100, Slices(3, 4)),
        ("4g.40gb", H100, Slices(4, 4)),
        ("1g.12gb", H100_NVL, Slices(1, 1)),
        ("3g.47gb", H100_NVL, Slices(3, 4)),
        ("1g.35gb", H200, Slices(1, 2)),
        ("3g.71gb", H200, Slices(3, 4)),
        ("7g.141gb", H200, Slices(7, 8)),
        ("1g.45gb", B200, Slices(1, 2)),
    ],
)
def test_a_name_alone_tells_what_nvidias_table_says(profile, memory_mib, taken):
    assert profile_slices(UNLISTED, profile, memory_mib) == taken


@pytest.mark.parametrize("geometry", TABLES.values(), ids=TABLES)
def test_a_listed_product_is_read_from_its_table(geometry):
    product = f"NVIDIA-{geometry.name}" if "RTX" not in geometry.name else "NVIDIA-RTX-PRO-6000-Blackwell"
    found = {p.name: profile_slices(product, p.name) for p in geometry.profiles}
    assert found == {p.name: Slices(p.compute, p.size) for p in geometry.profiles}


@pytest.mark.parametrize(("profile", "taken"), [("1g.6gb", Slices(1, 1)), ("2g.12gb", Slices(2, 2))])
def test_a30_has_four_slices(profile, taken):
    assert gpu_slices("NVIDIA-A30") == FOUR_SLICES
    assert profile_slices("NVIDIA-A30", profile, A30) == taken


def test_a3000_is_no_a30():
    assert gpu_slices("NVIDIA-RTX-A3000") == SEVEN_SLICES
    assert gpu_slices("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition") == FOUR_SLICES


def test_without_table_and_memory_only_a_profile_of_all_compute_slices_is_known():
    assert profile_slices(UNLISTED, "7g.80gb") == SEVEN_SLICES
    with pytest.raises(UnknownDivision, match="how NVIDIA-X100 is divided is not known"):
        profile_slices(UNLISTED, "2g.20gb")


@pytest.mark.parametrize(
    ("product", "profile", "instances"),
    [
        ("NVIDIA-B300-SXM6-AC-MIG-1g.67gb", "1g.67gb", 4),
        ("NVIDIA-B300-SXM6-AC-MIG-1g.34gb", "1g.34gb", 7),
        ("NVIDIA-GB300-MIG-4g.139gb", "4g.139gb", 1),
        ("NVIDIA-H20-MIG-1g.24gb", "1g.24gb", 4),
        ("NVIDIA-A800-SXM4-80GB-MIG-1g.20gb", "1g.20gb", 4),
        ("NVIDIA-A800-SXM4-40GB-MIG-1g.10gb", "1g.10gb", 4),
        ("NVIDIA-H800-MIG-1g.10gb", "1g.10gb", 7),
        ("NVIDIA-GH200-480GB-MIG-1g.24gb", "1g.24gb", 4),
        ("NVIDIA-GH200-144G-HBM3e-MIG-2g.36gb", "2g.36gb", 3),
        ("NVIDIA-GB200-MIG-1g.24gb", "1g.24gb", 7),
        ("NVIDIA-GB200-MIG-1g.23gb", "1g.23gb", 7),
    ],
)
def test_twins_and_later_gpus_have_as_many_instances_as_nvidias_mig_manager_makes(product, profile, instances):
    """Source: NVIDIA/mig-parted v0.15.0, deployments/systemd/config-default.yaml. No label has the GPU's memory."""
    assert instances_per_gpu(product, profile) == instances


@pytest.mark.parametrize("product", ["NVIDIA-A100-MIG-1g.10gb", "NVIDIA-H20-3e-MIG-1g.18gb", "NVIDIA-X100-MIG-1g.9gb"])
def test_a_profile_that_two_editions_divide_differently_is_not_guessed(product):
    with pytest.raises(UnknownDivision):
        profile_slices(product, product.partition("-MIG-")[2])


@pytest.mark.parametrize(
    ("profile", "share"),
    [
        ("1g.10gb", Fraction(1, 7)),
        ("2g.20gb", Fraction(2, 7)),
        ("3g.40gb", Fraction(1, 2)),
        ("7g.80gb", Fraction(1)),
    ],
)
def test_share_is_the_larger_of_compute_and_memory(profile, share):
    assert gpu_share(profile_slices(UNLISTED, profile, A100_80), SEVEN_SLICES) == share


def test_a_dot_in_a_resource_name_is_a_plus_in_the_profile():
    assert profile_of_resource("1g.10gb") == "1g.10gb"
    assert profile_of_resource("1g.5gb.me") == "1g.5gb+me"
    assert profile_of_resource("2g.48gb.me.all") == "2g.48gb+me.all"
    assert profile_of_resource("1g.24gb-me") == "1g.24gb-me"


@pytest.mark.parametrize("text", ["", "gpu", "1g", "1g.10gb.", "g.10gb", "1g.10gb 2"])
def test_what_is_no_profile_is_refused(text):
    with pytest.raises(ValueError, match="profile"):
        profile_of_resource(text)
    with pytest.raises(ValueError, match="profile"):
        compute_slices(text)
