"""The least memory of its GPUs that a claim can get: promises of a node must not exceed it."""

from fractions import Fraction

import pytest

from allocations.claims import memory_parts
from allocations.claims.units import DeviceDemand, DeviceDemands
from tests.support.claims import claim, demands, index

SMALL = {"device": "mig", "profile": "1g.10gb"}


@pytest.mark.parametrize(
    ("requests", "part"),
    [
        ([{"device": "gpu", "count": 2}], Fraction(2)),
        ([{"device": "mig", "profile": "1g.20gb", "count": 3}], Fraction(3, 4)),
        ([{"device": "mig"}], Fraction(1, 8)),
        ([{"device": "gpu", "count": "all"}], Fraction(8)),
        ([{"device": "gpu"}, SMALL], Fraction(9, 8)),
        ([{"alternatives": [{"device": "gpu"}, SMALL]}], Fraction(1, 8)),
        ([{"device": "gpu", "count": 8, "admin_access": True}], Fraction(0)),
    ],
)
def test_counts_the_least_that_it_can_be_given(requests, part):
    assert memory_parts.min_memory_part(claim(*requests), index("h100"), demands()) == part


def test_counts_shares_of_a_gpu():
    asked = claim({"device": "gpu", "count": 2, "capacity": {"shares": "3"}}, kind="l40s-shares")
    shared = DeviceDemands(share=DeviceDemand({"gpu-portal.io/gpu-shares": 1}, Fraction(1, 4), Fraction(1, 4)))
    assert memory_parts.min_memory_part(asked, index("l40s-shares"), shared) == Fraction(3, 2)


def test_an_alternative_that_no_device_meets_lowers_nothing():
    none = {"device": "mig", "capacities": [{"name": "memory", "operator": ">", "value": "900Gi"}]}
    asked = claim({"alternatives": [none, {"device": "gpu"}]})
    assert memory_parts.min_memory_part(asked, index("h100"), demands()) == 1
