"""A claim with another device affinity than desired is deleted with its holder, and created again once it is gone."""

from dataclasses import replace
from typing import Any

from allocations.cluster.backends import dra
from allocations.domain.actions import Apply, Delete, DesiredState, digest
from allocations.domain.allocation_spec import Constraints
from allocations.domain.objects import Applied, ObservedObject, Ref, Snapshot
from allocations.domain.observed import Intent, ObservedAllocation
from allocations.lifecycle.modes import hold
from allocations.reconcile.engine.plan import DELETED, plan
from tests.support import request_specs
from tests.support.held import CLAIM, DEADLINES, HOLDER, LEASE, at, lease

GPU, OTHER = "GPU-1", "GPU-2"
STEERED = replace(request_specs.WHOLE, kind="mig", device_class="mig.nvidia.com", gpu_uuids=(GPU,))
GIVEN_UP = replace(STEERED, gpu_uuids=())


def claim(gpus: tuple[str, ...], *, devices: int = 0, deleting: bool = False) -> ObservedObject:
    found = [{"pool": "h100-0", "device": f"gpu-{n}-mig-1g10gb-19-0"} for n in range(devices)]
    facts = {"devices": found, "allocated_at": "", "cards": list(gpus)}
    return ObservedObject(CLAIM, "u-claim", 11, allocation="train", deleting=deleting, facts=facts)


def holder(**facts: Any) -> ObservedObject:
    return ObservedObject(HOLDER, "u-holder", 12, allocation="train", facts={"phase": "Pending", **facts})


def wanted(request: Any, *seen: ObservedObject) -> tuple[ObservedAllocation, DesiredState]:
    view = Snapshot([lease(ready=False), *seen])
    situation = hold.assess(request, Intent(), view, {}, at(1), DEADLINES)
    return situation, hold.desired_state(request, situation, view, {})


def kinds(found: DesiredState) -> list[str]:
    return [manifest["kind"] for manifest in found.objects]


def test_a_claim_that_is_steered_as_wanted_stays():
    _, found = wanted(STEERED, claim((GPU,)), holder())
    assert kinds(found) == ["Workload", "ResourceClaim", "Pod"]
    assert found.unwanted == []


def test_one_that_is_given_up_goes_holder_first_and_nothing_is_made_meanwhile():
    for old in (claim((GPU,)), claim((GPU,), deleting=True)):
        situation, found = wanted(GIVEN_UP, old, holder())
        assert kinds(found) == ["Workload"]
        assert found.unwanted == [[HOLDER], [CLAIM]]
        assert not situation.facts.claim_deleted


def test_it_is_made_again_once_it_is_seen_gone():
    assert kinds(wanted(GIVEN_UP)[1]) == ["Workload", "ResourceClaim", "Pod"]


def test_what_is_held_stays_whatever_it_was_steered_to():
    _, found = wanted(replace(STEERED, gpu_uuids=(OTHER,)), claim((GPU,), devices=1), holder(phase="Running"))
    assert found.unwanted == []
    assert "ResourceClaim" in kinds(found)


def test_claims_of_slices_that_are_spread_are_told_apart():
    spread = replace(STEERED, constraints=Constraints(spread=True), count=2, gpu_uuids=("", OTHER))
    first = Ref("ResourceClaim", "vision-train", "train.0")
    view = Snapshot([ObservedObject(first, "u", 1, allocation="train", facts={"devices": [], "cards": [GPU]})])
    assert dra.outdated(spread, view) == [[Ref("Pod", "vision-train", "train.0-holder")], [first]]
    assert [m["metadata"]["name"] for m in dra.objects(spread, view)] == ["train.1", "train.1-holder"]


def test_the_plan_needs_to_know_nothing_of_it():
    """Holder, then claim, then the new claim: three passes of the same generic difference."""
    old, at_first = claim((GPU,)), holder()
    made = {Ref.of_manifest(m): m for m in dra.objects(STEERED, Snapshot())}
    done = {ref: Applied(ref, uid, 1, digest(made[ref]), "") for ref, uid in ((CLAIM, "u-claim"), (HOLDER, "u-holder"))}
    done[LEASE] = Applied(LEASE, "u-lease", 1, "lease", "")

    def steps(*seen: ObservedObject, synced: int = 0) -> list[Any]:
        view = Snapshot([lease(ready=False), *seen], {"Pod": synced, "ResourceClaim": synced})
        situation = hold.assess(GIVEN_UP, Intent(), view, done, at(1), DEADLINES)
        actions = plan(hold.desired_state(GIVEN_UP, situation, view, done), view, done)
        return [action for action in actions if not (isinstance(action, Apply) and action.ref == LEASE)]

    assert steps(old, at_first) == [Delete(HOLDER, "u-holder")]
    done[HOLDER] = replace(done[HOLDER], intent=DELETED)
    assert steps(old, at_first) == []
    assert steps(old, synced=20) == [Delete(CLAIM, "u-claim")]
    done[CLAIM] = replace(done[CLAIM], intent=DELETED)
    assert steps(replace(old, deleting=True), synced=20) == []
    again = steps(synced=30)
    assert [action.ref for action in again] == [CLAIM, HOLDER]
    assert "parentUUID" not in str(again[0].manifest)
