"""Each of Kueue's reasons in plain words, with a hint."""

import pytest

from allocations.domain import reasons
from allocations.domain.observed_facts import Condition
from allocations.domain.reasons import EVICTED, FINISHED, QUEUED, SPECIFIC, Cause, explain

DETAIL = "insufficient unused quota for nvidia.com/gpu in flavor l40s, 1 more needed"
UNUSED = "insufficient unused quota for gpu-portal.io/{}-slices in flavor h100, {} more needed"
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 5c0f, JobUID: UNKNOWN) due to {};"
    " preemptor path: /dept-research/team-secret; preemptee path: /dept-research/team-vision"
)


def condition(reason: str, message: str = "", status: str = "True") -> Condition:
    return {"status": status, "reason": reason, "message": message, "at": "2026-11-02T12:00:00+00:00"}


@pytest.mark.parametrize("reason", sorted(QUEUED.keys() - {"Deactivated"}))
def test_every_pending_reason_has_its_sentence(reason: str) -> None:
    found = explain({"QuotaReserved": condition(reason, "", "False")}, reserved=False)
    assert found == (reason, QUEUED[reason].sentence, QUEUED[reason].hint)


@pytest.mark.parametrize(
    ("reason", "words", "cause"), [(reason, *each) for reason, causes in SPECIFIC.items() for each in causes]
)
def test_a_reason_of_several_causes_tells_the_one_in_kueues_message(reason: str, words: str, cause: Cause) -> None:
    found = explain({"QuotaReserved": condition(reason, f"pod set main: {words} of l40s", "False")}, reserved=False)
    assert (found.reason, found.hint) == (reason, cause.hint)
    assert found.message.startswith(cause.sentence)


def test_nobody_is_told_to_ask_for_quota_where_no_quota_helps() -> None:
    """Kueue's own message, of a Job whose node affinity names a product that the team's queue has not."""
    said = "couldn't assign flavors to pod set main: flavor l40s doesn't match node affinity"
    found = explain({"QuotaReserved": condition("NoMatchingFlavor", said, "False")}, reserved=False)
    assert found.message.startswith("Its node selector or node affinity allows no kind of GPU")
    assert not found.hint.startswith("Ask")


def test_what_no_node_takes_is_told_in_the_schedulers_words() -> None:
    found = reasons.unschedulable("0/9 nodes are available: 9 node(s) didn't match Pod's node affinity/selector.")
    assert found.reason == "unschedulable"
    assert "9 node(s) didn't match Pod's node affinity/selector." in found.message
    assert "charged" in found.message


@pytest.mark.parametrize("reason", sorted(EVICTED.keys() - {"Preempted"}))
def test_every_eviction_has_its_sentence(reason: str) -> None:
    found = explain({"Evicted": condition(reason)}, reserved=True)
    assert found == (f"evicted_{reason.lower()}", EVICTED[reason].sentence, EVICTED[reason].hint)


@pytest.mark.parametrize("reason", sorted(FINISHED))
def test_every_end_has_its_sentence_whatever_else_still_stands(reason: str) -> None:
    conditions = {"Finished": condition(reason), "Admitted": condition("Admitted"), "Evicted": condition("Preempted")}
    assert explain(conditions, reserved=True) == (reason, FINISHED[reason].sentence, FINISHED[reason].hint)


@pytest.mark.parametrize("reason", ["WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor", "Deactivated"])
def test_what_can_be_done_is_said_where_something_waits_for_quota(reason: str) -> None:
    assert explain({"QuotaReserved": condition(reason, "", "False")}, reserved=False).hint


def test_a_job_that_waits_for_quota_is_told_what_must_be_free_and_never_in_units() -> None:
    found = explain({"QuotaReserved": condition("WaitingForQuota", DETAIL, "False")}, reserved=False)
    assert found.message == "The team has used its quota. It starts when 1 more GPU is free."
    sevenths = DETAIL.replace("nvidia.com/gpu", "gpu-portal.io/compute-slices").replace("1 more", "8 more")
    found = explain({"QuotaReserved": condition("WaitingForQuota", sevenths, "False")}, reserved=False)
    assert found.message == QUEUED["WaitingForQuota"].sentence
    mig = DETAIL.replace("nvidia.com/gpu", "nvidia.com/mig-1g.10gb").replace("1 more", "2 more")
    found = explain({"QuotaReserved": condition("WaitingForQuota", mig, "False")}, reserved=False)
    assert found.message == "The team has used its quota. It starts when 2 more mig-1g.10gb slices are free."


@pytest.mark.parametrize(
    ("message", "slices"),
    [
        (f"{UNUSED.format('compute', 7)}", 1),
        (f"{UNUSED.format('memory', 8)}", 1),
        (f"{UNUSED.format('compute', 14)}, {UNUSED.format('memory', 17)}", 3),
        ("insufficient unused quota for cpu in flavor h100, 3 more needed", 0),
        ("Bypassed scheduling evaluation", 0),
    ],
)
def test_units_that_kueue_misses_are_told_as_slices(message: str, slices: int) -> None:
    per_slice = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}
    assert reasons.missing_slices(message, per_slice) == slices


def test_kueues_own_message_is_kept_beside_unless_it_names_another_queue() -> None:
    waits = {"QuotaReserved": condition("WaitingForQuota", DETAIL, "False")}
    assert reasons.kueue_message(waits) == DETAIL
    preempted = {"QuotaReserved": condition("WaitingForQuota", PREEMPTED.format("x"), "False")}
    assert reasons.kueue_message(preempted) == ""
    assert reasons.kueue_message({"QuotaReserved": condition("QuotaReserved", "reserved")}) == ""
    assert reasons.kueue_message({}) == ""


def test_kueues_bypass_says_nothing_more() -> None:
    bypassed = condition("WaitingForQuota", "Bypassed scheduling evaluation since a like workload failed", "False")
    assert explain({"QuotaReserved": bypassed}, reserved=False).message == QUEUED["WaitingForQuota"].sentence


def test_a_stopped_queue_tells_its_own_cause() -> None:
    conditions = {"QuotaReserved": condition("Suspended", "ClusterQueue team-vision is inactive", "False")}
    found = explain(conditions, reserved=False, inactive="references missing ResourceFlavor(s): l40s.")
    assert found.message == f"{QUEUED['Suspended'].sentence} Kueue: references missing ResourceFlavor(s): l40s."


def test_a_cause_in_the_suffix_is_told_in_words() -> None:
    found = explain({"Evicted": condition("DeactivatedDueToRequeuingLimitExceeded")}, reserved=True)
    assert found.reason == "evicted_deactivated"
    assert found.message == "It was deactivated in Kueue. It was evicted too often."


@pytest.mark.parametrize(("cause", "whom"), reasons.PREEMPTED_FOR)
def test_a_preemption_tells_its_cause_and_never_the_other_team(cause: str, whom: str) -> None:
    found = explain({"Evicted": condition("Preempted", PREEMPTED.format(cause))}, reserved=True)
    assert found.message == f"Kueue reclaims its quota for {whom}."
    assert "secret" not in "".join(found)


def test_an_eviction_that_is_over_is_not_the_reason_why_it_waits() -> None:
    conditions = {"Evicted": condition("Preempted"), "QuotaReserved": condition("WaitingForQuota", "", "False")}
    assert explain(conditions, reserved=False).reason == "WaitingForQuota"


@pytest.mark.parametrize("reason", ["PendingEvaluation", "Pending"])
@pytest.mark.parametrize("cause", [cause for cause, _ in reasons.PREEMPTED_FOR])
def test_what_was_preempted_and_waits_again_does_not_tell_for_whom(reason: str, cause: str) -> None:
    """Kueue keeps its message about the preemption until it evaluates the workload again."""
    said = PREEMPTED.format(cause)
    conditions = {"Evicted": condition("Preempted", said), "QuotaReserved": condition(reason, said, "False")}
    assert "secret" not in "".join(explain(conditions, reserved=False))


def test_what_kueue_took_out_of_its_queue_for_good_tells_why() -> None:
    ran_out = condition("DeactivatedDueToMaximumExecutionTimeExceeded")
    found = explain({"Evicted": ran_out, "QuotaReserved": condition("Deactivated", "", "False")}, reserved=False)
    assert found.reason == "Deactivated"
    assert found.message == "It was deactivated in Kueue. It reached its maximum running time."
    assert found.hint


def test_what_was_just_submitted_is_in_its_queue() -> None:
    assert explain({}, reserved=False) == ("submitted", QUEUED["submitted"].sentence, "")


def test_a_reason_that_nobody_knows_is_told_in_kueues_words() -> None:
    found = explain({"QuotaReserved": condition("Mystery", "the moon is full", "False")}, reserved=False)
    assert found == ("Mystery", "the moon is full", "")


def test_what_has_quota_is_admitted() -> None:
    assert explain({"QuotaReserved": condition("QuotaReserved")}, reserved=True).reason == "admitted"


def test_what_is_passed_over_for_another_like_it_is_not_said_to_be_unseen():
    bypassed = condition("PendingEvaluation", "Bypassed scheduling evaluation since a like workload failed", "False")
    found = reasons.explain({"QuotaReserved": bypassed}, reserved=False)
    assert found.reason == "Bypassed"
    assert "has not evaluated" not in found.message
    assert "another one like it" in found.message
    assert "If that one can never start, neither can this." in found.message
    assert "the one with the same GPUs, pods and priority" in found.hint
    assert "whether it can ever start" in found.hint


@pytest.mark.parametrize("generic", ["Pending", "Inadmissible"])
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("insufficient unused quota for nvidia.com/gpu in flavor l40s, 1 more needed", "WaitingForQuota"),
        ("insufficient quota for nvidia.com/gpu in flavor l40s, request > maximum capacity (9 > 8)", "ExceedsMaxQuota"),
        ("flavor h100 doesn't match node affinity", "NoMatchingFlavor"),
        ("ClusterQueue team-vision is inactive", "Suspended"),
        ("LocalQueue gpu doesn't exist", "Misconfigured"),
    ],
)
def test_a_reason_of_the_former_set_is_told_as_that_of_the_new_one(generic: str, message: str, reason: str) -> None:
    assert reasons.queued(generic, message) == reasons.queued(reason, message)


NEW_REASONS = (  # KEP-10852
    "WaitingForQuota",
    "ExceedsMaxQuota",
    "NoMatchingFlavor",
    "Misconfigured",
    "Suspended",
    "AdmissionGated",
    "WaitingForPodsReady",
    "WaitingForPreemptedWorkloads",
    "TopologyPlacementFailed",
    "OnHold",
    "Deactivated",
    "PendingEvaluation",
)


def test_every_reason_of_kep_10852_has_its_sentence_and_an_unknown_one_kueues_own() -> None:
    assert [reason for reason in NEW_REASONS if reason not in QUEUED] == []
    assert reasons.queued("SomethingNew", "Kueue says why").message == "Kueue says why"
    assert reasons.queued("SomethingNew").message == QUEUED["submitted"].sentence
