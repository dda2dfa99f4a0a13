"""Use beyond a lease: holder, amount and resource, and how much of it is reserved."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.lifecycle.lease_excess import DEVICES, Excess, Hold, Holder, HolderKind, find

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
NS = "vision-train"
HOLD = Hold("7", "train", NS, 3, {GPU: 2})
BY_DRA = replace(HOLD, amounts={DEVICES: 2})
LEASE = ObservedObject(
    Ref("Workload", NS, "train-lease"), "u-lease", 1, allocation="train", facts={"cluster_queue": "vision"}
)
JOB = "5f0f5bd2-0000-4000-8000-000000000001"


def pod(name: str, gpus: int = 1, *, allocation: str = "", deleting: bool = False, **facts: Any) -> ObservedObject:
    there = {"node": "l40s-0", "phase": "Running", "gpus": {GPU: gpus}, **facts}
    return ObservedObject(Ref("Pod", NS, name), f"u-{name}", 2, allocation=allocation, deleting=deleting, facts=there)


def claim(name: str, devices: int, allocation: str = "train") -> ObservedObject:
    facts = {"devices": [{"pool": "h100-0", "device": f"gpu-{n}"} for n in range(devices)]}
    return ObservedObject(Ref("ResourceClaim", NS, name), f"u-{name}", 2, allocation=allocation, facts=facts)


def workload(gpus: int, queue: str = "vision") -> ObservedObject:
    facts = {"cluster_queue": queue, "usage": {"l40s": {GPU: gpus}}, "job": {"name": "sweep", "uid": JOB}}
    return ObservedObject(Ref("Workload", NS, "job-sweep-1"), "u-workload", 1, facts=facts)


def excesses(*seen: ObservedObject, holds: tuple[Hold, ...] = (HOLD,)) -> list[tuple[HolderKind, str, int, int]]:
    return [(e.holder.kind, e.resource, e.used, e.reserved) for e in find(Snapshot(seen), holds, NOW)]


def test_pods_within_the_lease_are_no_excess() -> None:
    assert excesses(LEASE, pod("a", allocation="train"), pod("b", allocation="train")) == []


def test_pods_of_one_allocation_are_added_up_by_label_and_by_class() -> None:
    stray = replace(pod("b", 2), facts={**pod("b", 2).facts, "class": "gpu-portal-hold-slot.3"})
    assert excesses(LEASE, pod("a", allocation="train"), stray) == [(HolderKind.ALLOCATION, GPU, 3, 2)]


@pytest.mark.parametrize(
    "idle",
    [
        pod("a", 9, allocation="train", node=""),
        pod("a", 9, allocation="train", phase="Succeeded"),
        pod("a", 9, allocation="train", deleting=True, ends_by=(NOW + timedelta(seconds=1)).isoformat()),
    ],
    ids=["not bound", "finished", "ending within its grace"],
)
def test_what_cannot_use_a_gpu_or_is_ending_in_time_uses_nothing(idle: ObservedObject) -> None:
    assert excesses(LEASE, idle) == []


def test_a_pod_past_its_grace_is_an_excess_of_which_nothing_can_be_ended() -> None:
    late = pod("a", deleting=True, job=JOB, ends_by=(NOW - timedelta(seconds=1)).isoformat())
    (found,) = find(Snapshot([late]), (), NOW)
    assert (found.used, found.reserved, found.pods, found.overdue_pods) == (1, 0, (), (late.ref,))
    assert found.sentence.endswith("where 0 are reserved; 1 pod is past its grace period.")


def test_without_a_reservation_the_lease_gives_nothing() -> None:
    reserved_no_more = replace(LEASE, facts={"cluster_queue": ""})
    assert excesses(reserved_no_more, pod("a", allocation="train")) == [(HolderKind.ALLOCATION, GPU, 1, 0)]


def test_a_hold_whose_lease_is_made_again_may_stand_meanwhile() -> None:
    assert excesses(pod("a", allocation="train"), holds=(replace(HOLD, may_hold_without_lease=True),)) == []


def test_by_dra_devices_count_however_many_pods_share_them() -> None:
    sharing = [pod(name, 0, allocation="train") for name in "abc"]
    assert excesses(LEASE, claim("train", 2), *sharing, holds=(BY_DRA,)) == []
    assert excesses(LEASE, claim("train", 3), holds=(BY_DRA,)) == [(HolderKind.ALLOCATION, DEVICES, 3, 2)]


def test_another_claim_with_the_label_of_an_allocation_is_none_of_its_own() -> None:
    hold, other = replace(BY_DRA, claims=("train",)), claim("train-2", 1)
    (found,) = find(Snapshot([LEASE, claim("train", 2), other]), (hold,), NOW)
    assert (found.holder.kind, found.used, found.reserved, found.claims) == (HolderKind.CLAIM, 1, 0, (other.ref,))


def test_a_persons_own_claim_has_what_it_was_given_while_its_lease_stands() -> None:
    own = replace(HOLD, amounts={DEVICES: None})
    assert excesses(LEASE, claim("train", 5), holds=(own,)) == []
    assert excesses(claim("train", 5), holds=(own,)) == [(HolderKind.ALLOCATION, DEVICES, 5, 0)]


def test_pods_of_a_queued_job_use_what_kueue_reserved_for_it() -> None:
    pods = [pod(name, job=JOB) for name in "ab"]
    assert excesses(workload(2), *pods) == []
    assert excesses(workload(1), *pods) == [(HolderKind.JOB, GPU, 2, 1)]
    assert excesses(workload(2, queue=""), *pods) == [(HolderKind.JOB, GPU, 2, 0)]


def test_what_belongs_to_nobody_has_nothing_reserved() -> None:
    assert excesses(pod("bare")) == [(HolderKind.POD, GPU, 1, 0)]
    assert excesses(pod("gone", allocation="of-yesterday")) == [(HolderKind.POD, GPU, 1, 0)]
    assert excesses(claim("stray", 1, allocation="")) == [(HolderKind.CLAIM, DEVICES, 1, 0)]


def test_a_claim_that_the_scheduler_made_for_what_a_pod_asks_is_counted_with_the_pod() -> None:
    made = claim("sweep-0-extended-resources-x", 1, allocation="")
    made = replace(made, facts={**made.facts, "pod": "u-sweep-0"})
    assert excesses(workload(1), pod("sweep-0", job=JOB), made) == []
    assert excesses(workload(1), made) == [(HolderKind.CLAIM, DEVICES, 1, 0)]


def test_the_sentence_says_who_uses_how_much_of_what() -> None:
    holder = Holder(HolderKind.JOB, NS, JOB, "sweep")
    said = Excess(holder, GPU, 2, 1).sentence
    assert said == "The Job sweep uses 2 nvidia.com/gpu where 1 are reserved."
