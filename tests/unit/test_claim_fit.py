"""The lease of a claim, whether a fleet can hold it, and the message if it never can."""

from fractions import Fraction

import pytest

from allocations.claims import device_schema, diagnostics, fit, units
from allocations.claims.fit import Answer
from allocations.claims.units import DeviceDemand, DeviceDemands
from tests.support.claims import claim, demands, fleet, index

COMPUTE, MEMORY = "gpu-portal.io/compute-slices", "gpu-portal.io/memory-slices"
ROOT = "resource.kubernetes.io/pcieRoot"


def most(*requests, **parts) -> tuple[int, int]:
    demanded = units.max_demand(claim(*requests, **parts), index("h100"), demands()).amounts
    return demanded.get(COMPUTE, 0), demanded.get(MEMORY, 0)


@pytest.mark.parametrize(
    ("requests", "amounts"),
    [
        ([{"device": "gpu"}], (7, 8)),
        ([{"device": "gpu", "count": 2}], (14, 16)),
        ([{"device": "mig", "profile": "1g.20gb", "count": 3}], (3, 6)),
        ([{"device": "mig"}], (7, 8)),
        ([{"device": "mig", "capacities": [{"name": "memory", "operator": "<", "value": "30Gi"}]}], (2, 2)),
        ([{"device": "gpu", "count": "all"}], (56, 64)),
        ([{"device": "gpu"}, {"device": "mig", "profile": "1g.10gb"}], (8, 9)),
        (
            [
                {
                    "alternatives": [
                        {"device": "mig", "profile": "1g.20gb", "count": 3},
                        {"device": "mig", "profile": "3g.40gb"},
                    ]
                }
            ],
            (3, 6),
        ),
        ([{"device": "gpu", "count": 8, "admin_access": True}], (0, 0)),
    ],
)
def test_counts_the_most_that_it_can_take(requests, amounts):
    assert most(*requests) == amounts


def test_counts_the_price_of_the_dearest_too():
    assert units.max_demand(claim({"device": "gpu", "count": 2}), index("h100"), demands()).share == 2


def test_counts_shares():
    asked = claim({"device": "gpu", "count": 2, "capacity": {"shares": "3"}}, kind="l40s-shares")
    shared = DeviceDemands(share=DeviceDemand({"gpu-portal.io/gpu-shares": 1}, Fraction(1, 4)))
    found = units.max_demand(asked, index("l40s-shares"), shared)
    assert found == DeviceDemand({"gpu-portal.io/gpu-shares": 6}, Fraction(3, 2))


def test_tells_what_was_given_beyond_what_is_counted():
    devices = [device for device in fleet("h100").devices if device.kind == "gpu"]
    given = [(device, 1) for device in devices[:3]]
    assert units.excess({COMPUTE: 21, MEMORY: 24}, given, demands()) == {}
    assert units.excess({COMPUTE: 14, MEMORY: 24}, given, demands()) == {COMPUTE: 21}
    assert units.excess({}, [(devices[0], 3)], DeviceDemands(share=DeviceDemand({"x": 1}))) == {}


def test_says_what_it_cannot_count():
    with pytest.raises(units.Uncountable) as caught:
        units.max_demand(claim({"device": "mig"}), index("h100"), DeviceDemands(whole=DeviceDemand({"x": 1})))
    assert caught.value.path == "claim.requests[0]"
    assert "in no pool" in caught.value.detail


def fits(*requests, taken: tuple[str, ...] = (), kind: str = "h100", **parts) -> Answer:
    return fit.Search(fleet(kind, *taken)).fits(claim(*requests, kind=kind, **parts))


def test_a_node_of_eight_holds_eight_and_not_nine():
    assert fits({"count": 8}) is Answer.YES
    assert fits({"count": 9}) is Answer.NO


def test_what_claims_have_is_not_given_again():
    first = tuple(f"h100-{node}/gpu-{gpu}" for node in range(2) for gpu in range(8))
    assert fits({"count": 1}, taken=first[:-1]) is Answer.YES
    assert fits({"count": 1}, taken=first) is Answer.NO
    assert fits({"count": 2}, taken=first[:-1]) is Answer.NO


def test_a_gpu_with_a_slice_on_it_is_whole_no_more():
    sliced = tuple(f"h100-{node}/gpu-{gpu}-mig-1g10gb-19-6" for node in range(2) for gpu in range(8))
    assert fits({"device": "gpu"}, taken=sliced) is Answer.NO
    assert fits({"device": "mig", "profile": "7g.80gb"}, taken=sliced) is Answer.NO
    assert fits({"device": "mig", "profile": "4g.40gb", "count": 8}, taken=sliced) is Answer.YES


def test_slices_of_one_gpu_are_as_many_as_fit_on_it():
    same = [{"match_attribute": "parentUUID"}]
    assert fits({"device": "mig", "profile": "1g.10gb", "count": 7}, constraints=same) is Answer.YES
    assert fits({"device": "mig", "profile": "1g.20gb", "count": 5}, constraints=same) is Answer.NO
    assert fits(*({"device": "mig", "profile": "1g.10gb"} for _ in range(32)), constraints=same) is Answer.NO
    mixed = [{"device": "mig", "profile": "4g.40gb"}, {"device": "mig", "profile": "3g.40gb"}]
    assert fits(*mixed, constraints=same) is Answer.YES


def test_gpus_below_one_root():
    root = [{"match_attribute": ROOT}]
    assert fits({"count": 2}, constraints=root) is Answer.YES
    assert fits({"count": 8}, constraints=root) is Answer.NO
    assert fits({"count": 2}, constraints=[{"distinct_attribute": ROOT}]) is Answer.YES


def test_the_next_alternative_is_tried():
    asked = {"alternatives": [{"device": "gpu", "count": 9}, {"device": "mig", "profile": "1g.10gb"}]}
    assert fits(asked) is Answer.YES


def test_all_are_all_of_a_node_or_none():
    assert fits({"count": "all"}) is Answer.YES
    one_each = ("h100-0/gpu-0", "h100-1/gpu-7")
    assert fits({"count": "all"}, taken=one_each) is Answer.NO
    assert fits({"device": "mig", "count": "all"}) is Answer.NO


def test_shares_are_taken_until_there_are_no_more():
    def asked(n: int) -> dict:
        return {"device": "gpu", "capacity": {"shares": str(n)}}

    assert fits(asked(4), kind="l40s-shares") is Answer.YES
    assert fits(asked(5), kind="l40s-shares") is Answer.NO


def test_admin_access_sees_what_others_have():
    first = tuple(f"h100-{node}/gpu-{gpu}" for node in range(2) for gpu in range(8))
    assert fits({"count": "all", "admin_access": True}, taken=first) is Answer.YES


def infeasible(*requests, **parts) -> diagnostics.Infeasible:
    found = diagnostics.infeasible(claim(*requests, **parts), fleet("h100"))
    assert found is not None
    return found


def test_says_that_a_node_has_fewer():
    found = infeasible({"count": 9})
    assert (found.path, found.max_count) == ("claim.requests[0]", 8)
    assert found.hint == "Ask for at most 8."


def test_says_what_devices_publish_instead():
    found = infeasible({"capacities": [{"name": "memory", "operator": ">=", "value": "200Gi"}]})
    assert "memory >= 200Gi" in found.detail
    assert found.hint == "Devices here have 81152Mi."
    other = infeasible({"attributes": [{"name": "architecture", "operator": "==", "value": "Ampere"}]})
    assert other.hint == "Devices here have Hopper."


def test_says_the_least_and_the_most_where_devices_differ():
    found = infeasible({"device": "mig", "capacities": [{"name": "memory", "operator": ">=", "value": "200Gi"}]})
    least, most = found.hint.removeprefix("Devices here have ").removesuffix(".").split(" to ")
    assert least != most


def test_no_list_of_what_there_is_has_nothing_in_it():
    assert device_schema.problem("numaNode", {}, "attribute").endswith(" None publishes any.")


def test_says_which_constraint_binds():
    found = infeasible({"name": "gpu", "count": 8}, constraints=[{"match_attribute": ROOT, "requests": ["gpu"]}])
    assert found.path == "claim.constraints[0]"
    assert 1 < found.max_count < 8
    assert f"at most {found.max_count} as gpu" in found.hint


def test_says_that_a_claim_is_on_one_node():
    found = infeasible({"count": 8}, {"count": 1})
    assert "several allocations" in found.hint


def test_says_nothing_where_it_could_be_held():
    assert diagnostics.infeasible(claim({"count": 8}), fleet("h100", "h100-0/gpu-0", "h100-1/gpu-0")) is None


def test_many_requests_that_are_plainly_too_much_are_not_tried_in_every_order():
    assert fits(*({"count": 1} for _ in range(9))) is Answer.NO
    assert fits(*({"device": "mig", "profile": "3g.40gb"} for _ in range(17))) is Answer.NO
    assert fits(*({"device": "mig", "profile": "3g.40gb"} for _ in range(16))) is Answer.YES
    assert "several allocations" in infeasible(*({"count": 1} for _ in range(9))).hint


def test_the_constraint_that_cannot_hold_beside_another_is_told():
    both = [{"match_attribute": "parentUUID"}, {"distinct_attribute": "parentUUID"}]
    found = infeasible({"device": "mig", "profile": "1g.10gb", "count": 2}, constraints=both)
    assert found.path.startswith("claim.constraints")


def test_conditions_that_no_device_meets_together_are_told():
    apart = [{"name": "profile", "operator": "==", "value": "1g.10gb"}]
    much = [{"name": "memory", "operator": ">=", "value": "60Gi"}]
    found = infeasible({"device": "mig", "attributes": apart, "capacities": much})
    assert "at once" in found.detail


def test_parts_of_the_same_gpus_are_not_all_to_be_had():
    assert "same GPUs" in infeasible({"device": "mig", "count": "all"}).detail


def test_as_many_gpus_as_there_are_can_differ():
    apart = [{"distinct_attribute": "parentUUID"}]
    assert fits({"device": "mig", "profile": "1g.10gb", "count": 8}, constraints=apart) is Answer.YES
    assert fits({"device": "mig", "profile": "1g.10gb", "count": 9}, constraints=apart) is Answer.NO


def test_a_whole_gpu_that_somebody_has_gives_no_slices_of_it():
    same = [{"match_attribute": "parentUUID"}]
    first = tuple(f"h100-{node}/gpu-{gpu}" for node in range(2) for gpu in range(8))
    assert fits({"device": "mig", "profile": "1g.10gb"}, constraints=same, taken=first) is Answer.NO
    assert fits({"device": "mig", "profile": "1g.10gb"}, constraints=same, taken=first[1:]) is Answer.YES
