"""The desired objects of an allocation: through eviction, a deleted claim, and a start without a device."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from allocations.domain.actions import DesiredState, ReleaseReservation, SetPodsReady
from allocations.domain.allocation_spec import Constraints
from allocations.domain.objects import ObservedObject, Ref, ResolvedSpec, Snapshot
from allocations.domain.observed import Intent, ObservedAllocation
from allocations.domain.phases import Phase, derive
from allocations.lifecycle.modes import hold
from tests.support.held import CLAIM, DEADLINES, HOLDER, LEASE, at, lease
from tests.support.request_specs import L40S, NOW, WHOLE

POD = Ref("Pod", "vision-train", "notebook")
QUOTA = Ref("ResourceQuota", "vision-train", "gpu-portal-hold-slot.0")
GUARD = Ref("GpuProject", "vision-train", "gpu-portal")


def claim(*, devices: int = 1, deleting: bool = False) -> ObservedObject:
    found = [{"pool": "h100-0", "device": f"gpu-{n}"} for n in range(devices)]
    facts = {"devices": found, "allocated_at": NOW.isoformat()}
    return ObservedObject(CLAIM, "u-claim", 11, allocation="train", deleting=deleting, facts=facts)


def holder(phase: str = "Running") -> ObservedObject:
    return ObservedObject(
        HOLDER, "u-holder", 12, allocation="train", facts={"phase": phase, "ready_at": at(4).isoformat()}
    )


def pod() -> ObservedObject:
    return ObservedObject(POD, "u-pod", 13, allocation="train", facts={"phase": "Running"})


def look(
    seen: Sequence[ObservedObject], now_s: float, *, spec: ResolvedSpec = WHOLE, **intent: Any
) -> tuple[ObservedAllocation, DesiredState]:
    view, meant = Snapshot(seen), Intent(**intent)
    situation = hold.assess(spec, meant, view, {}, at(now_s), DEADLINES)
    return situation, hold.desired_state(spec, situation, view, {})


def kinds(wanted: DesiredState) -> list[str]:
    return [manifest["kind"] for manifest in wanted.objects]


UNUSED = "insufficient unused quota for {} in flavor h100, {} more needed"


@pytest.mark.parametrize(
    ("spec", "message", "missing"),
    [
        (WHOLE, UNUSED.format("gpu-portal.io/memory-slices", 8), "1 more GPU is"),
        (replace(L40S, count=3), UNUSED.format("nvidia.com/gpu", 2), "2 more GPUs are"),
        (replace(WHOLE, kind="mig"), UNUSED.format("gpu-portal.io/compute-slices", 14), "2 more slices are"),
        (WHOLE, "Bypassed scheduling evaluation", "enough of the quota is"),
    ],
)
def test_what_waits_for_quota_is_told_what_must_be_free_in_slices(
    spec: ResolvedSpec, message: str, missing: str
) -> None:
    condition = {"status": "False", "reason": "WaitingForQuota", "message": message, "at": NOW.isoformat()}
    waits = replace(lease(), facts={"conditions": {"QuotaReserved": condition}, "cluster_queue": ""})
    situation, _ = look([waits], 1, spec=spec)
    said = derive(situation.facts).message
    assert said == f"The team has used its quota. It starts when {missing} free."


class TestEviction:
    HELD = (lease(evicted_s=100), claim(), holder(), pod())

    def test_it_keeps_everything_while_the_notice_runs(self) -> None:
        situation, wanted = look(self.HELD, 159)
        assert situation.evict_at == at(160)
        assert situation.facts.leaving_until == at(160)
        assert situation.is_granted
        assert kinds(wanted) == ["Workload", "ResourceClaim", "Pod"]
        assert wanted.unwanted == []
        assert hold.wake_at(WHOLE, Intent(), situation) == at(160)

    def test_then_pods_go_before_the_holder_and_the_claim_and_the_lease_stays(self) -> None:
        situation, wanted = look(self.HELD, 160)
        assert not situation.is_granted
        assert kinds(wanted) == ["Workload"]
        assert wanted.unwanted == [[POD], [HOLDER], [CLAIM]]
        assert wanted.status == ()

    @pytest.mark.parametrize("left", [pod(), holder(), claim()], ids=["pod", "holder", "claim"])
    def test_the_reservation_stands_while_anything_is_left(self, left: ObservedObject) -> None:
        _, wanted = look([self.HELD[0], left], 161)
        assert wanted.status == ()

    def test_the_reservation_is_given_back_when_nothing_is_left(self) -> None:
        _, wanted = look(self.HELD[:1], 161)
        assert wanted.status == [
            ReleaseReservation(LEASE, "Preempted", "Kueue reclaims its quota for another workload.")
        ]

    def test_what_holds_nothing_yet_gets_no_notice(self) -> None:
        situation, wanted = look(self.HELD[:1], 100)
        assert situation.evict_at == at(100)
        assert not situation.is_granted
        assert wanted.status == [
            ReleaseReservation(LEASE, "Preempted", "Kueue reclaims its quota for another workload.")
        ]

    def test_slices_whose_lease_is_new_get_the_same_time_to_be_admitted(self) -> None:
        made_again = lease(admitted=False)
        assert look([made_again, claim(), holder()], 59)[0].is_granted
        assert not look([made_again, claim(), holder()], 60)[0].is_granted


class TestClaimDeleted:
    def test_pods_end_first_and_the_claim_is_wanted_again_without_its_holder(self) -> None:
        situation, wanted = look([lease(), claim(deleting=True), holder(), pod()], 10)
        assert situation.facts.claim_deleted
        assert kinds(wanted) == ["Workload", "ResourceClaim"]
        assert wanted.unwanted == [[POD], [HOLDER]]

    def test_kueue_hears_of_it_once_nothing_is_held(self) -> None:
        _, wanted = look([lease(), claim(devices=0, deleting=True)], 10)
        assert wanted.status == [SetPodsReady(LEASE, False, "The slices are not assigned.")]


class TestStart:
    WAITING = (lease(ready=False), claim(devices=0), holder("Pending"))

    def test_it_must_hold_within_the_deadline_from_when_it_began_to_start(self) -> None:
        situation, _ = look(self.WAITING, 30, phase=Phase.STARTING, phase_since=at(5))
        assert situation.start_by == at(125)
        assert hold.wake_at(WHOLE, Intent(), situation) == at(125)

    def test_a_start_that_was_just_seen_has_all_its_time(self) -> None:
        """After a pause of the portal: that is not the scheduler's fault."""
        situation, _ = look(self.WAITING, 500, phase=Phase.QUEUED, phase_since=at(0))
        assert situation.start_by == at(620)

    def test_what_is_held_has_no_deadline_and_kueue_is_told(self) -> None:
        situation, wanted = look([lease(ready=False), claim(), holder()], 10)
        assert situation.start_by is None
        assert wanted.status == [SetPodsReady(LEASE, True, "The slices are assigned.")]
        assert [s.since for s in situation.held] == [at(4)]

    def test_after_a_failed_start_everything_goes_the_lease_last(self) -> None:
        _, wanted = look(self.WAITING, 200, not_before=at(230))
        assert wanted.objects == ()
        assert wanted.unwanted == [[], [HOLDER], [CLAIM], [LEASE]]

    def test_what_it_was_given_meanwhile_goes_before_it_queues_again(self) -> None:
        """Otherwise devices that are being taken back would count as held, or as the next failure."""
        situation, wanted = look([lease(), claim(), pod()], 300, not_before=at(230), reason="more_than_counted")
        assert wanted.unwanted == [[POD], [HOLDER], [CLAIM]]
        verdict = derive(situation.facts)
        assert (verdict.phase, verdict.reason) == (Phase.QUEUED, "more_than_counted")

    def test_when_the_pause_is_over_it_queues_again(self) -> None:
        situation, wanted = look([], 230, not_before=at(230))
        assert kinds(wanted) == ["Workload"]
        assert not situation.is_granted


class TestRelease:
    def test_the_lease_stays_until_the_slices_are_seen_free(self) -> None:
        _, wanted = look([lease(), claim(), holder(), pod()], 10, released=True)
        assert wanted.unwanted == [[POD], [HOLDER], [CLAIM]]
        _, wanted = look([lease(), claim(devices=0)], 10, released=True)
        assert wanted.unwanted == [[], [HOLDER], [CLAIM], [LEASE]]

    def test_a_count_is_in_use_until_the_quota_lists_it_no_more(self) -> None:
        quota = ObservedObject(QUOTA, "u-quota", 14, facts={"slices": {"train": {"nvidia.com/gpu": 2}}, "shown": True})
        situation, wanted = look([lease(), quota], 10, spec=L40S, released=True)
        assert situation.occupied
        assert wanted.unwanted == [[]]
        situation, wanted = look([lease()], 10, spec=L40S, released=True)
        assert wanted.unwanted == [[], [LEASE]]
        assert hold.wake_at(L40S, Intent(released=True), situation) == at(70)

    def test_a_count_stays_in_its_quota_until_its_pods_are_gone_though_the_guard_lets_none_in(self) -> None:
        facts = {"slices": {"train": {"nvidia.com/gpu": 2}}}
        quota = ObservedObject(QUOTA, "u-quota", 14, facts=facts)
        guard = ObservedObject(GUARD, "u-guard", 15, facts={"allocations": []})
        situation, _ = look([lease(), quota, guard, pod()], 10, spec=L40S, released=True)
        assert situation.keeps_quota
        situation, _ = look([lease(), quota, guard], 10, spec=L40S, released=True)
        assert not situation.keeps_quota

    def test_a_pod_of_its_class_keeps_its_number_though_it_lost_the_label(self) -> None:
        stray = ObservedObject(POD, "u-pod", 13, facts={"phase": "Running", "class": "gpu-portal-hold-slot.0"})
        situation, wanted = look([lease(), stray], 10, spec=L40S, released=True)
        assert wanted.unwanted[0] == [POD]
        assert not situation.facts.nothing_left
        other = replace(stray, allocation="another")
        situation, wanted = look([lease(), other], 10, spec=L40S, released=True)
        assert wanted.unwanted[0] == []
        assert not situation.facts.nothing_left
        assert hold.wake_at(L40S, Intent(released=True), situation) == at(15)


class TestGuard:
    """Pods are admitted when everything is held and charged, and the quota of their class is in force; never
    before.
    """

    SPREAD = replace(WHOLE, constraints=Constraints(spread=True), count=2)
    BOUND = ObservedObject(QUOTA, "u-quota", 14, facts={"slices": {"train": {}}, "shown": True})
    OPEN = ObservedObject(GUARD, "u-guard", 15, facts={"allocations": ["train"]})

    def part(self, index: int, *, devices: int = 1, phase: str = "Running") -> list[ObservedObject]:
        claim_of, holder_of = f"train.{index}", f"train.{index}-holder"
        return [
            replace(claim(devices=devices), ref=CLAIM._replace(name=claim_of), uid=f"u-{claim_of}"),
            replace(holder(phase), ref=HOLDER._replace(name=holder_of), uid=f"u-{holder_of}"),
        ]

    def test_what_is_held_is_usable_once_its_quota_binds(self) -> None:
        held = [lease(), claim(), holder()]
        assert not look(held, 10)[0].is_usable
        assert not look([*held, replace(self.BOUND, facts={"slices": {"train": {}}, "shown": False})], 10)[0].is_usable
        situation, _ = look([*held, self.BOUND], 10)
        assert situation.is_usable
        assert derive(situation.facts).phase is Phase.STARTING
        assert derive(look([*held, self.BOUND, self.OPEN], 10)[0].facts).phase is Phase.ACTIVE

    def test_of_two_spread_slices_one_is_not_usable_while_the_other_cannot_start(self) -> None:
        half = [lease(), self.BOUND, *self.part(0), *self.part(1, devices=0, phase="Pending")]
        assert not look(half, 10, spec=self.SPREAD)[0].is_usable
        assert hold.charged(self.SPREAD, Snapshot(half)) == ()

    def test_one_spread_holder_that_is_lost_shuts_out_nobody_and_is_charged_on(self) -> None:
        lost = [lease(), self.BOUND, self.OPEN, *self.part(0), self.part(1)[0]]
        situation, _ = look(lost, 10, spec=self.SPREAD)
        assert not situation.held
        assert situation.is_usable
        assert len(hold.charged(self.SPREAD, Snapshot(lost))) == 2

    def test_nothing_is_usable_when_none_of_it_is_held(self) -> None:
        assert not look([lease(), self.BOUND, self.OPEN, claim(devices=0)], 10)[0].is_usable


class TestQuota:
    """A new hold quota is written by itself; whatever concerns another object too takes the project's reconcile."""

    WRITTEN = ObservedObject(QUOTA, "u-quota", 14, facts={"slices": {"train": {"nvidia.com/gpu": 2}}})

    def written_by(self, *seen: ObservedObject, **intent: Any) -> tuple[bool, bool]:
        """Return whether the project has to be reconciled, and whether only the quota is written."""
        situation, view = look(seen, 10, spec=L40S, **intent)[0], Snapshot(seen)
        return hold.needs_project(L40S, situation, view), hold.needs_quota(L40S, situation, view)

    def test_a_new_one_needs_nothing_else(self) -> None:
        assert self.written_by(lease()) == (False, True)

    def test_none_is_needed_before_admission(self) -> None:
        assert self.written_by(lease(admitted=False)) == (False, False)

    def test_once_it_is_written_nothing_is_left_to_do(self) -> None:
        assert self.written_by(lease(), self.WRITTEN) == (False, False)

    def test_one_of_another_amount_takes_the_project(self) -> None:
        other = replace(self.WRITTEN, facts={"slices": {"train": {"nvidia.com/gpu": 1}}})
        assert self.written_by(lease(), other) == (True, False)

    def test_one_that_is_no_longer_its_own_takes_the_project(self) -> None:
        assert self.written_by(lease(), self.WRITTEN, released=True) == (True, False)
