from fractions import Fraction

from quotas.catalog.node_shares import NodeShare, per_gpu, per_slice

H100 = NodeShare(190_000, 2040 * 1024, 250)


def test_a_gpu_has_an_even_part_of_what_the_system_leaves() -> None:
    assert per_gpu([(NodeShare(62_000, 504 * 1024, 250), Fraction(4))]) == NodeShare(15_190, 126_443, 57)


def test_the_least_of_a_flavors_nodes_is_what_every_gpu_has() -> None:
    small = NodeShare(94_000, 2040 * 1024, 250)
    assert (
        per_gpu([(H100, Fraction(8)), (small, Fraction(8))]).cpu_millicores
        == per_gpu([(small, Fraction(8))]).cpu_millicores
    )


def test_a_node_that_does_not_tell_what_it_has_lowers_nothing() -> None:
    assert per_gpu([(H100, Fraction(8)), (NodeShare(), Fraction(8))]) == per_gpu([(H100, Fraction(8))])
    assert not per_gpu([(NodeShare(), Fraction(8))])


def test_what_goes_with_all_slices_of_a_node_is_at_most_the_node() -> None:
    gpu = per_gpu([(H100, Fraction(8))])
    for part, most in ((Fraction(1), 8), (Fraction(1, 8), 56), (Fraction(1, 2), 16), (Fraction(1, 4), 32)):
        share = per_slice(gpu, part, holders=1)
        assert most * share.cpu_millicores <= H100.cpu_millicores
        assert most * share.memory_mib <= H100.memory_mib
        assert most * (share.pods + 1) <= H100.pods


def test_a_slice_has_at_most_16_pods_and_at_least_one() -> None:
    assert per_slice(NodeShare(1000, 1000, 100), Fraction(1), holders=1).pods == 16
    assert per_slice(NodeShare(1000, 1000, 8), Fraction(1, 8), holders=1).pods == 1
