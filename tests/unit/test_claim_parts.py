"""The node share of a custom claim: the part of a GPU's memory that its lease reserves."""

from fractions import Fraction

from quotas.catalog.claim_parts import GpuFact, memory_part
from quotas.catalog.node_shares import MIN_SHARE, NodeShare, of_claim

H100 = GpuFact("NVIDIA-H100-80GB-HBM3", 81559)
CUT = GpuFact("NVIDIA-H100-80GB-HBM3", 81559, memory_slices=8)
GPU = NodeShare(23_000, 250 * 1024, 28)


def test_of_a_gpu_that_is_cut_memory_slices_count_and_compute_slices_do_not():
    assert memory_part({"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 2}, CUT) == Fraction(1, 4)


def test_whole_gpus_and_mig_devices_made_beforehand_add_up():
    units = {"nvidia.com/gpu": 2, "nvidia.com/mig-3g.40gb": 1, "gpu-portal.io/mig-1g.10gb.me": 1}
    assert memory_part(units, H100) == 2 + Fraction(1, 2) + Fraction(1, 8)


def test_a_share_of_a_gpu_is_one_of_its_shares():
    assert memory_part({"gpu-portal.io/gpu-shares": 2}, GpuFact("NVIDIA-L40S", 46068, replicas=4)) == Fraction(1, 2)


def test_a_claim_for_two_gpus_has_twice_what_a_gpu_has():
    assert of_claim(GPU, Fraction(2)) == NodeShare(46_000, 500 * 1024, 32)


def test_the_pod_that_holds_a_claim_is_left_out_of_its_pods():
    assert of_claim(GPU, Fraction(1, 4)).pods == 6


def test_a_claim_that_takes_nothing_of_a_gpu_has_the_least():
    assert of_claim(GPU, Fraction(0)) == MIN_SHARE
