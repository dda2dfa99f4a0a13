"""The portal's search for the devices of a claim: what it says is true, it is bounded, and it knows how long the
scheduler would search.
"""

import random

from allocations.claims import diagnostics, fit, published, scheduler_search
from allocations.claims.fit import Answer
from allocations.claims.model import Claim
from allocations.claims.scheduler_search import Steps, TooLong
from tests.support import exhaustive_claims
from tests.support.claims import claim, facts, fleet
from tests.support.exhaustive_claims import TooMany
from tests.support.sizes import size

SAME_GPU = [{"match_attribute": "parentUUID"}]


def mig(profile: str, count: int = 1) -> dict[str, object]:
    return {"device": "mig", "profile": profile, "count": count}


def test_what_it_says_of_random_claims_is_what_a_search_of_all_combinations_finds():
    found = {True: 0, False: 0}
    undecided = 0
    for seed in range(size(50, 3000)):
        chance = random.Random(seed)
        kind, devices = exhaustive_claims.small_fleet(chance)
        asked = exhaustive_claims.random_claim(chance, kind)
        try:
            possible = exhaustive_claims.is_possible(asked, devices)
        except TooMany:
            continue
        answer = fit.Search(devices).fits(asked)
        if answer is Answer.UNKNOWN:
            undecided += 1
            continue
        assert (answer is Answer.YES) == possible, f"seed {seed}"
        found[possible] += 1
    assert min(found.values()) >= size(6, 400)
    assert undecided <= sum(found.values()) / 100


def test_the_scheduler_is_followed_to_the_same_answer():
    ended = 0
    for seed in range(size(50, 3000)):
        chance = random.Random(seed)
        kind, devices = exhaustive_claims.small_fleet(chance)
        asked = exhaustive_claims.random_claim(chance, kind)
        search = fit.Search(devices)
        try:
            by_scheduler = scheduler_finds(search, asked)
        except TooLong:
            continue
        ended += 1
        assert by_scheduler == (search.fits(asked) is Answer.YES), f"seed {seed}"
    assert ended >= size(38, 2500)


def scheduler_finds(search: fit.Search, asked: Claim, limit: int = 5_000) -> bool:
    steps = Steps(limit)
    return any(scheduler_search.finds(node.for_claim(asked, tried=True), steps) for node in search.nodes)


def hard_claim(chance: random.Random) -> Claim:
    """Return a claim of up to 32 devices in many requests, alternatives and constraints: as hard as a member can."""
    profiles = chance.sample(exhaustive_claims.PROFILES, chance.randint(1, 4))
    requests: list[dict[str, object]] = []
    for index in range(chance.randint(5, 32)):
        choices = [mig(chance.choice(profiles)) for _ in range(chance.choice([1, 1, 2]))]
        requests.append({"name": f"r{index}", **(choices[0] if len(choices) == 1 else {"alternatives": choices})})
    names = [str(request["name"]) for request in requests]
    constraints = [
        {
            chance.choice(["match_attribute", "match_attribute", "distinct_attribute"]): chance.choice(
                ["parentUUID", exhaustive_claims.ROOT, exhaustive_claims.NUMA, "profile"]
            ),
            "requests": chance.sample(names, chance.randint(2, min(6, len(names)))),
        }
        for _ in range(chance.choice([0, 0, 1, 2, 8, 32]))
    ]
    return claim(*requests, constraints=constraints)


def test_of_the_hardest_claims_few_are_undecided_and_none_takes_more_than_its_steps():
    undecided, drawn = 0, size(20, 1000)
    for seed in range(drawn):
        search = fit.Search(fleet("h100"))
        undecided += search.fits(hard_claim(random.Random(seed))) is Answer.UNKNOWN
        assert search.steps.used <= fit.MAX_STEPS + 1
    assert undecided <= drawn / 20


def test_what_the_scheduler_is_given_it_finds_in_few_steps():
    accepted = 0
    for seed in range(size(10, 1000)):
        asked = hard_claim(random.Random(seed))
        if diagnostics.infeasible(asked, fleet("h100")) is None:
            accepted += 1
            assert scheduler_finds(fit.Search(fleet("h100")), asked, scheduler_search.MAX_STEPS)
    assert accepted >= size(1, 50)


def test_instances_that_one_gpu_has_no_places_for_are_refused_as_such():
    """Counters leave room for these on one GPU; places do not."""
    found = diagnostics.infeasible(claim(mig("1g.10gb", 4), mig("2g.20gb", 2), constraints=SAME_GPU), fleet("h100"))
    assert found is not None
    assert (found.reason, found.path) == ("never_fits", "claim.constraints[0]")


def test_more_instances_than_a_node_has_places_for_are_counted():
    found = diagnostics.infeasible(claim(mig("2g.20gb", 25)), fleet("h100"))
    assert found is not None
    assert (found.reason, found.max_count) == ("never_fits", 24)


def test_nodes_that_a_claim_cannot_tell_apart_are_searched_once():
    search = fit.Search(fleet("h100"))
    one = claim(mig("2g.20gb", 25), constraints=[{"match_attribute": exhaustive_claims.ROOT}])
    assert len(search.nodes) == 2
    assert len({search_node.signature(one) for search_node in search.nodes}) == 1
    uuid = next(device.attributes["gpu.nvidia.com/uuid"] for device in fleet("h100").devices if device.kind == "gpu")
    other = claim({"device": "gpu", "attributes": [{"name": "uuid", "operator": "==", "value": uuid}]})
    assert len({search_node.signature(other) for search_node in search.nodes}) == 2


def fleet_of(nodes: int) -> fit.Fleet:
    return published.fleet(facts("h100", nodes))


def test_the_scheduler_searches_nodes_that_are_alike_too():
    asked = claim(*(mig("1g.10gb") for _ in range(32)))
    assert fit.is_schedulable(asked, fleet_of(2))
    assert not fit.is_schedulable(asked, fleet_of(16))


def test_what_is_found_at_once_is_found_on_any_number_of_nodes():
    together = claim(mig("3g.40gb"), mig("4g.40gb"), constraints=SAME_GPU)
    for asked in (claim({"count": 8}), claim(mig("1g.10gb", 32)), claim({"count": "all"}), together):
        assert fit.is_schedulable(asked, fleet_of(60))


def test_the_scheduler_evaluates_all_expressions_of_a_request_on_each_device():
    met = [{"name": "memory", "operator": ">=", "value": "1Mi"}] * 14
    gpus = [device.attributes["gpu.nvidia.com/uuid"] for device in fleet("h100").devices if device.kind == "gpu"]
    of_last = [{"name": "parentUUID", "operator": "in", "value": gpus[-2:]}]
    few, many = (
        claim(*({"device": "mig", "attributes": of_last, "capacities": met[:number]} for _ in range(14)))
        for number in (1, 14)
    )
    assert fit.is_schedulable(few, fleet("h100"))
    assert not fit.is_schedulable(many, fleet("h100"))


def test_a_list_of_values_is_longer_to_evaluate_than_one():
    values = [f"{number}Mi" for number in range(1, 32)]
    none = [{"name": "memory", "operator": "!=", "value": "1Mi"}] * 3
    listed = [{"name": "memory", "operator": "in", "value": [*values, "9984Mi"]}] * 3
    short, long = (claim(*({"device": "mig", "capacities": each} for _ in range(7))) for each in (none, listed))
    steps = [used(each) for each in (short, long)]
    assert steps[1] > 2 * steps[0]


def used(asked: Claim) -> float:
    steps = Steps(1_000_000)
    assert scheduler_search.finds(fit.Search(fleet("h100")).nodes[0].for_claim(asked, tried=True), steps)
    return steps.used


def test_equal_requests_are_not_tried_in_every_order():
    search = fit.Search(fleet("h100"))
    assert search.fits(claim(*(mig("2g.20gb") for _ in range(25)))) is Answer.NO
    assert search.steps.used < 500


def test_a_claim_that_only_another_order_makes_easy_is_refused_with_that_order():
    small, large = {"name": "small", **mig("1g.10gb", 25)}, {"name": "large", **mig("4g.40gb", 5)}
    found = diagnostics.infeasible(claim(small, large), fleet("h100"))
    assert found is not None
    assert (found.reason, found.path) == ("too_complex", "claim.requests")
    assert found.hint == "List the requests for the largest devices first: large, small."
    assert diagnostics.infeasible(claim(large, small), fleet("h100")) is None


def test_what_it_cannot_decide_is_refused(monkeypatch):
    monkeypatch.setattr(fit, "MAX_STEPS", 10)
    monkeypatch.setattr(scheduler_search, "MAX_STEPS", 10)
    found = diagnostics.infeasible(claim(mig("1g.10gb", 25), mig("4g.40gb", 5)), fleet("h100"))
    assert found is not None
    assert found.reason == "too_complex"
    assert "cannot tell within 10 steps" in found.detail


def test_a_claim_is_not_for_the_scheduler_where_it_would_try_all_orders_in_vain():
    """Sixteen requests for halves of eight GPUs, of which one half is in use on each node."""
    asked = claim(*(mig("3g.40gb") for _ in range(16)))
    halves = [device.name for device in fleet("h100").devices if "3g40gb" in device.name]
    assert fit.is_schedulable(asked, fleet("h100"))
    in_use = fleet("h100", f"h100-0/{halves[0]}", f"h100-1/{halves[0]}")
    assert fit.Search(in_use).fits(asked) is Answer.NO
    assert not fit.is_schedulable(asked, in_use)


def test_the_scheduler_tries_all_orders_on_a_node_that_lacks_what_a_later_request_needs():
    uuid = next(device.attributes["gpu.nvidia.com/uuid"] for device in fleet("h100").devices if device.kind == "gpu")
    small = [{"name": f"small-{number}", **mig("1g.10gb")} for number in range(12)]
    one = {"name": "one", "device": "gpu", "attributes": [{"name": "uuid", "operator": "==", "value": uuid}]}
    found = diagnostics.infeasible(claim(*small, one), fleet("h100"))
    assert found is not None
    assert (found.reason, found.path) == ("too_complex", "claim.requests")
    assert found.hint.startswith("List the requests for the largest devices first: one, small-0, ")
    assert diagnostics.infeasible(claim(one, *small), fleet("h100")) is None
