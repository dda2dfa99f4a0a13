"""The cost of a node between its GPUs and the rest, by the worked examples of AWS and OpenCost; nothing is lost."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.cluster.projectors import nodes
from quotas.costs import node_split
from quotas.costs.node_split import AWS, GPUS_ONLY, Weights
from quotas.costs.node_terms import TERMS_BY_LABEL, Term, term_of_labels
from quotas.costs.rating import PRICE_UNITS

amounts = st.fractions(min_value=0, max_value=1000, max_denominator=1000)
some = st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=1000)


def test_the_worked_example_of_aws():
    """p3.16xlarge at 10 an hour: 8 GPUs, 64 vCPU, 488 GB (AWS, example of accelerated instances)."""
    found = node_split.unit_costs(Fraction(10), Fraction(64), Fraction(488), Fraction(8), AWS)
    assert [round(float(each), 4) for each in (found.gpu, found.cpu, found.memory_gib)] == [0.5045, 0.0504, 0.0056]
    assert found.gpu == 10 * found.cpu == 90 * found.memory_gib
    assert 8 * found.gpu + 64 * found.cpu + 488 * found.memory_gib == 10


def test_the_worked_example_of_opencost():
    """A node of 35 whose parts have default prices of 30, 30 and 10: the ratios hold, and the sum is the node's."""
    found = node_split.unit_costs(
        Fraction(35), Fraction(1), Fraction(1), Fraction(1), Weights(Fraction(30), Fraction(10), Fraction(30))
    )
    assert [found.cpu, found.gpu, found.memory_gib] == [15, 15, 5]


def test_all_to_gpus_leaves_nothing_to_the_rest():
    assert node_split.per_gpu_hour(Fraction(32), Fraction(192), Fraction(2048), Fraction(8), GPUS_ONLY) == 4


@given(amounts, amounts, amounts, some, st.builds(Weights, amounts, amounts, some))
def test_gpus_never_cost_more_than_their_node(per_node_hour, cpus, memory, gpus, weights):
    price = node_split.per_gpu_hour(per_node_hour, cpus, memory, gpus, weights)
    assert 0 <= price * gpus <= per_node_hour
    assert price * PRICE_UNITS == int(price * PRICE_UNITS)


@pytest.mark.parametrize(
    ("labels", "term"),
    [
        ({"karpenter.sh/capacity-type": "reserved"}, Term.RESERVED),
        ({"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "ON_DEMAND"}, Term.SPOT),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, Term.ON_DEMAND),
        ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, Term.RESERVED),
        ({"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "standard"}, Term.SPOT),
        ({"cloud.google.com/gke-provisioning": "standard"}, None),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, Term.SPOT),
        ({"karpenter.sh/capacity-type": "something-new"}, None),
        ({}, None),
    ],
)
def test_the_term_is_the_one_that_labels_say(labels, term):
    assert term_of_labels(labels) == term


@pytest.mark.parametrize("label", TERMS_BY_LABEL)
def test_the_watcher_keeps_the_labels_that_say_a_term(label):
    labels = {label: "spot", "nvidia.com/gpu.product": "NVIDIA-L40S", "example.com/rack": "7"}
    facts = nodes.node({"metadata": {"name": "l40s-0", "labels": labels}})
    assert facts
    assert facts["labels"] == {label: "spot", "nvidia.com/gpu.product": "NVIDIA-L40S"}


def test_every_label_says_a_term():
    assert all(term_of_labels({label: value}) for label, terms in TERMS_BY_LABEL.items() for value in terms)
