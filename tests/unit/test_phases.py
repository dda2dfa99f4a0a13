"""Phases: one ordered list, of which the first line that holds decides."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from allocations.domain.phases import PHASES, Ending, Facts, LeaseFacts, Outcome, Phase, derive, failed_start, outcome

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
ADMITTED = LeaseFacts(reserved=True, admitted=True, admitted_at=NOW)
EVICTED = replace(ADMITTED, evicted_at=NOW, evicted_reason="Preempted", evicted_message="Preempted by another.")
PENDING = LeaseFacts(pending_reason="WaitingForQuota")
NOTHING = Facts(now=NOW)

# In the order of the list: each case is true of its own line, and of no line above it.
CASES = (
    ("nothing is left", replace(NOTHING, released=True, nothing_left=True), Phase.ENDED, ""),
    ("something is left", replace(NOTHING, released=True), Phase.RELEASING, "cleaning_up"),
    ("starts later", replace(NOTHING, starts_at=LATER), Phase.SCHEDULED, "starts_later"),
    ("waits for a number", replace(NOTHING, number_wait="Full."), Phase.QUEUED, "allocation_limit"),
    ("the owner is asked", replace(NOTHING, needs_attention=True), Phase.SUSPENDED, "no_fitting_device"),
    ("pauses", replace(NOTHING, not_before=LATER), Phase.QUEUED, "no_fitting_device"),
    ("notice runs", replace(NOTHING, held=True, lease=EVICTED), Phase.LEAVING, "evicted_preempted"),
    ("held", replace(NOTHING, held=True, listed=True, lease=ADMITTED), Phase.ACTIVE, "held"),
    ("claim deleted", replace(NOTHING, claim_deleted=True, lease=ADMITTED), Phase.STARTING, "claim_deleted"),
    ("admitted", replace(NOTHING, lease=ADMITTED), Phase.STARTING, "admitted"),
    ("waits", replace(NOTHING, lease=PENDING), Phase.QUEUED, "WaitingForQuota"),
)


def test_every_line_has_a_case() -> None:
    assert len(CASES) == len(PHASES)


@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=[case[0] for case in CASES])
def test_the_first_line_that_holds_gives_phase_and_reason(number: int, case: tuple[str, Facts, Phase, str]) -> None:
    _, facts, phase, reason = case
    assert derive(facts)[:2] == (phase, reason)
    assert [row.holds(facts) for row in PHASES[: number + 1]] == [False] * number + [True]


@pytest.mark.parametrize(("upper", "lower"), list(pairwise(CASES)), ids=[case[0] for case in CASES[:-1]])
def test_where_two_lines_hold_the_upper_one_decides(
    upper: tuple[str, Facts, Phase, str], lower: tuple[str, Facts, Phase, str]
) -> None:
    """The lower line's facts, and what makes the upper line hold."""
    both = {name: value for name, value in vars(upper[1]).items() if value != getattr(NOTHING, name)}
    assert derive(replace(lower[1], **both))[:2] == upper[2:]


def test_a_request_that_nobody_has_seen_yet_is_queued() -> None:
    assert derive(NOTHING)[:2] == (Phase.QUEUED, "submitted")


def test_times_that_have_come_hold_nothing_back() -> None:
    assert derive(replace(NOTHING, starts_at=NOW, not_before=NOW, lease=ADMITTED)).phase is Phase.STARTING


def test_an_eviction_counts_down_in_words() -> None:
    verdict = derive(replace(NOTHING, held=True, lease=EVICTED, leaving_until=LATER))
    assert verdict.until == LATER
    assert verdict.message == "Preempted by another. Pods end at 2026-03-01 12:05:00 UTC."


@pytest.mark.parametrize(
    ("ending", "was_held", "expected"),
    [
        (Ending.PERSON, False, Outcome.CANCELLED),
        (Ending.PERSON, True, Outcome.RELEASED),
        (Ending.EXPIRED, False, Outcome.EXPIRED),
        (Ending.EVICTED, True, Outcome.EVICTED),
        (Ending.FAILED, True, Outcome.FAILED),
    ],
)
def test_the_outcome_follows_from_why_it_ended_and_whether_it_was_held(
    ending: Ending, was_held: bool, expected: Outcome
) -> None:
    assert outcome(ending, was_held=was_held) is expected


@pytest.mark.parametrize(
    "waits",
    [
        replace(NOTHING, starts_at=LATER),
        replace(NOTHING, not_before=LATER),
        replace(NOTHING, lease=ADMITTED, start_by=LATER),
    ],
    ids=["scheduled", "pause", "starting"],
)
def test_what_time_alone_ends_says_when(waits: Facts) -> None:
    assert derive(waits).until == LATER
    assert derive(NOTHING).until is None


def test_what_is_kept_from_the_scheduler_says_why_and_until_when() -> None:
    waits = replace(NOTHING, lease=ADMITTED, start_by=LATER)
    assert derive(waits).message.startswith(
        f"Admitted by Kueue, waiting for a device until {LATER:%Y-%m-%d %H:%M:%S} UTC;"
    )
    message = derive(replace(waits, blocked="no node has devices free")).message
    assert (
        f"{LATER:%H:%M:%S} UTC, since no node has devices free; then it releases its quota and queues again" in message
    )


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("0/14 nodes are available: 2 cannot allocate all claims.", "No device fitted within the start deadline"),
        (
            "0/14 nodes are available: 2 Insufficient cpu, 12 node(s) didn't match Pod's node affinity/selector.",
            "Its nodes had no CPU left within the start deadline",
        ),
        (
            "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 2 Too many pods.",
            "Its nodes had no CPU, memory and pod slots left within the start deadline",
        ),
        (
            "0/2 nodes are available: 1 Too many pods, 1 cannot allocate all claims.",
            "No device fitted within the start deadline: some nodes had none, others no pod slots left",
        ),
    ],
)
def test_a_start_that_failed_names_what_the_scheduler_found_missing(said: str, sentence: str) -> None:
    assert failed_start("no_fitting_device", said) == sentence


def test_a_start_that_was_refused_names_no_node() -> None:
    assert failed_start("start_refused", "Insufficient cpu") == "The cluster refused what would hold it"


def test_gpus_that_no_node_publishes_any_more_are_not_said_to_be_ready() -> None:
    held = replace(NOTHING, held=True, listed=True, lease=ADMITTED)
    assert derive(held).message == "Your GPUs are ready."
    verdict = derive(replace(held, unpublished="gpu-1 of node h100-0"))
    assert verdict[:2] == (Phase.ACTIVE, "device_not_published")
    assert verdict.message.startswith("No node publishes gpu-1 of node h100-0 any more, so pods may not start on it.")
