"""CPU and memory as pages show them: never more than there is."""

import pytest

from frontend.presenters.amounts import node_share
from quotas.catalog.node_shares import NodeShare


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (NodeShare(23_000, 250 * 1024, 16), "23 CPU and 250 GiB of memory"),
        (NodeShare(2_999, 32_767, 2), "2.9 CPU and 31 GiB of memory"),
        (NodeShare(859, 9_999, 1), "0.85 CPU and 9999 MiB of memory"),
        (NodeShare(), ""),
    ],
)
def test_cpu_and_memory_are_rounded_down(share, words):
    assert node_share(share) == words
