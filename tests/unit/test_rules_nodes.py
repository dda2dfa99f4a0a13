"""More slices than a node has: refused by DRA, unless they may be on several nodes."""

from dataclasses import replace

import pytest

from allocations.domain.admission import AdmissionInput
from allocations.requests.fact_providers import PROVIDERS
from allocations.requests.rules import fits, max_possible, more_than_a_node, needed, violations

WIDE = AdmissionInput(
    offering="h100/whole",
    pool="h100/slices",
    kind="whole",
    path="dra",
    count=10,
    total=16,
    free=16,
    per_node=8,
    quota=12,
    used=0,
    team="vision",
)


def test_more_than_a_node_has_is_refused_with_both_ways_out():
    violation = more_than_a_node(WIDE)
    assert violation is not None
    assert (violation.reason, violation.dimension, violation.limit) == ("never_fits", "node:h100/whole", 8)
    assert violation.hint == "Ask for at most 8, or set constraints.spread for up to 12 on several nodes."


@pytest.mark.parametrize("quota", [8, 4])
def test_spread_is_no_way_out_where_the_quota_ends_first(quota):
    violation = more_than_a_node(replace(WIDE, quota=quota))
    assert violation is not None
    assert violation.hint == f"Ask for at most {quota}."


@pytest.mark.parametrize("changed", [{"spread": True}, {"path": "device-plugin"}, {"count": 8}])
def test_what_may_be_on_several_nodes_or_fits_on_one_is_let_through(changed):
    ask = replace(WIDE, **changed)
    assert violations(ask) == []
    assert fits(ask) == "now"


@pytest.mark.parametrize(("changed", "most"), [({}, 8), ({"spread": True}, 12), ({"path": "device-plugin"}, 12)])
def test_the_most_that_is_possible(changed, most):
    assert max_possible(replace(WIDE, **changed)) == most


def test_each_fact_that_a_rule_needs_has_a_provider():
    assert set(needed()) == set(PROVIDERS)
