"""The CPU and memory per GPU that operators may set for a flavor."""

from fractions import Fraction

import pytest

from quotas.catalog import quantities
from quotas.catalog.node_shares import NodeShare
from quotas.catalog.share_settings import FlavorFact, problems

CPU, MEMORY = "cpu_millicores_per_gpu", "memory_mib_per_gpu"
H100 = FlavorFact("h100", NodeShare(23_250, 250 * 1024, 28), Fraction(1, 8))


@pytest.mark.parametrize("cpu", [None, 80, 23_250])
@pytest.mark.parametrize("memory", [None, 128, 250 * 1024])
def test_up_to_an_even_part_of_the_smallest_node_is_fine(cpu, memory):
    assert problems(H100, {CPU: cpu, MEMORY: memory}) == {}


def test_more_than_the_smallest_node_has_is_refused_with_the_most_that_works():
    found = problems(H100, {CPU: 23_251, MEMORY: 250 * 1024 + 1})
    assert found[CPU] == [
        "The smallest node of h100 has 23250m of CPU for each of its GPUs, beside what the system needs. "
        "Give 23250m or less, or leave it empty (null) for that."
    ]
    assert "has 250Gi of memory for each of its GPUs" in found[MEMORY][0]


@pytest.mark.parametrize("value", [0, -1, 79])
def test_less_than_the_smallest_slice_can_use_is_refused_with_the_least_that_works(value):
    (words,) = problems(H100, {CPU: value})[CPU]
    assert words == (
        "That is too little CPU for the smallest slice of h100 to start a container. "
        "Give 80m to 23250m, or leave it empty (null) for the latter."
    )


def test_where_only_one_amount_works_it_is_no_range():
    (words,) = problems(FlavorFact("t4", NodeShare(80, 0, 28), Fraction(1, 8)), {CPU: 1})[CPU]
    assert words.endswith("Give 80m, or leave it empty (null) for that.")


def test_nothing_can_be_decided_before_a_node_has_told_what_it_has():
    unknown = FlavorFact("h100", NodeShare(), Fraction(1))
    assert "No node of h100 has reported yet how much memory it has." in problems(unknown, {MEMORY: 1024})[MEMORY][0]
    assert problems(unknown, {CPU: None, MEMORY: None}) == {}


@pytest.mark.parametrize(
    ("text", "millicores", "shown"),
    [("23", 23_000, "23"), ("23.5", 23_500, "23500m"), ("23500m", 23_500, "23500m"), ("0", 0, "0")],
)
def test_cpu_is_read_and_written_as_kubernetes_does(text, millicores, shown):
    assert quantities.millicores(text) == millicores
    assert quantities.cpu_text(millicores) == shown


@pytest.mark.parametrize(
    ("text", "mib", "shown"),
    [("250Gi", 256_000, "250Gi"), ("1024Gi", 2**20, "1Ti"), ("1.5Gi", 1536, "1536Mi"), ("1G", 953, "953Mi")],
)
def test_memory_is_read_and_written_as_kubernetes_does(text, mib, shown):
    assert quantities.mib(text) == mib
    assert quantities.memory_text(mib) == shown


def test_no_memory_at_all_is_written_too():
    assert quantities.memory_text(0) == "0Mi"
