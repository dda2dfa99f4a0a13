"""Constraints of a request: refused if they can never hold, with an alternative."""

from dataclasses import replace

import pytest

from allocations.domain.admission import AdmissionInput
from allocations.requests.rules import approvals, fits, max_possible, violations

SEVEN = AdmissionInput(
    offering="h100/mig-1g.10gb",
    pool="h100/slices",
    kind="mig",
    path="dra",
    count=7,
    total=112,
    free=112,
    per_node=56,
    quota=56,
    used=0,
    team="vision",
    constraints=("same_gpu",),
    max_colocated=7,
    free_colocated=7,
)
ONE = replace(SEVEN, constraints=(), count=1, one_at_a_time=True, replicas=4, path="device-plugin", max_colocated=None)


def test_what_can_hold_is_let_through():
    assert violations(SEVEN) == []
    assert fits(SEVEN) == "now"


def test_what_needs_an_approval_violates_nothing():
    critical = replace(SEVEN, priority="critical")
    assert [one.role for one in approvals(critical)] == ["lead"]
    assert violations(critical) == []
    assert approvals(SEVEN) == []


def test_what_can_hold_later_queues():
    assert fits(replace(SEVEN, free_colocated=5)) == "queue"


def test_what_never_holds_is_refused_with_what_would():
    (found,) = violations(replace(SEVEN, count=8))
    assert (found.reason, found.dimension, found.limit) == ("never_fits", "node:h100/mig-1g.10gb", 7)
    assert found.detail == "7 slices of h100/mig-1g.10gb can be on one GPU at most, and 8 were requested."
    assert found.hint == "Ask for at most 7, or leave out constraints.same_gpu."


def test_a_clique_that_no_node_tells_is_refused_in_words():
    (found,) = violations(replace(SEVEN, constraints=("same_clique",), max_colocated=0, count=1))
    assert "no node has the label nvidia.com/gpu.clique" in found.detail
    assert found.hint == "Leave this constraint out."


def test_by_device_plugin_no_device_is_named():
    (found,) = violations(replace(SEVEN, path="device-plugin", constraints=("same_pcie_root",), max_colocated=None))
    assert found.reason == "never_fits"
    assert "names no device" in found.detail
    assert "DRA" in found.hint


def test_fragments_that_do_not_fit_together_are_not_had_now():
    assert fits(replace(SEVEN, constraints=(), count=10, free_colocated=9)) == "queue"


def test_one_at_a_time_is_one():
    assert violations(ONE) == []
    (found,) = violations(replace(ONE, count=2))
    assert (found.reason, found.limit, found.requested) == ("count_invalid", 1, 2)
    assert "failRequestsGreaterThanOne" in found.detail


@pytest.mark.parametrize(
    ("changed", "most"),
    [({}, 7), ({"constraints": ()}, 56), ({"one_at_a_time": True}, 1), ({"max_colocated": None}, 0)],
)
def test_the_most_that_is_possible(changed, most):
    assert max_possible(replace(SEVEN, count=100, **changed)) == most
