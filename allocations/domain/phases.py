"""The phases of an allocation, and the ordered rules that derive its phase from facts. Pure.

The first rule whose condition holds gives the phase. ``docs/reference/phases.md`` is rendered from the rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from allocations.domain import reasons


class Phase(StrEnum):
    """The state of an allocation between its request and its end."""

    PENDING_APPROVAL = "pending_approval"
    SCHEDULED = "scheduled"
    WAITLISTED = "waitlisted"
    OFFERED = "offered"
    QUEUED = "queued"
    STARTING = "starting"
    ACTIVE = "active"
    LEAVING = "leaving"
    SUSPENDED = "suspended"
    RELEASING = "releasing"
    ENDED = "ended"


RESERVING = (Phase.STARTING, Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING)
"""Phases in which Kueue counts the lease against the team's quota."""


class Outcome(StrEnum):
    """How an allocation ended."""

    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"
    RELEASED = "released"
    EXPIRED = "expired"
    EVICTED = "evicted"
    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"


class Ending(StrEnum):
    """Why an allocation is ending. It becomes the outcome once all objects of the allocation are gone."""

    PERSON = "person"
    EXPIRED = "expired"
    EVICTED = "evicted"
    FAILED = "failed"


def outcome(ending: Ending, *, was_held: bool) -> Outcome:
    """Return the outcome of an allocation that ends for this reason; one released before it was held is cancelled."""
    if ending is Ending.PERSON:
        return Outcome.RELEASED if was_held else Outcome.CANCELLED
    return Outcome(ending.value)


_REACHED = {outcome(ending, was_held=was_held) for ending in Ending for was_held in (True, False)}
REACHED = tuple(each for each in Outcome if each in _REACHED)
"""The outcomes that an allocation can have; the others are for features to come."""

FAILED_STARTS = {
    "no_fitting_device": "No device fitted within the start deadline",
    "start_refused": "The cluster refused what would hold it",
    "more_than_counted": "It was given more than its lease counts",
}
"""Why an admitted allocation could not start, by machine reason."""
RESOURCE_BY_ERROR = {"Insufficient cpu": "CPU", "Insufficient memory": "memory", "Too many pods": "pod slots"}
NO_DEVICE = "cannot allocate all claims"
"""kube-scheduler's message for nodes on which no device fits; the messages above are for CPU, memory and pods."""


def failed_start(reason: str, message: str) -> str:
    """Return why an allocation could not start, as a sentence without full stop; ``message`` is the cluster's."""
    lacking = [name for error, name in RESOURCE_BY_ERROR.items() if error in message]
    if reason != "no_fitting_device" or not lacking:
        return FAILED_STARTS[reason]
    names = " and ".join(filter(None, (", ".join(lacking[:-1]), lacking[-1])))
    if NO_DEVICE in message:
        return f"{FAILED_STARTS[reason]}: some nodes had none, others no {names} left"
    return f"Its nodes had no {names} left within the start deadline"


@dataclass(frozen=True)
class LeaseFacts:
    """The state of a lease (Kueue Workload), from its conditions."""

    created_at: datetime | None = None
    reserved: bool = False
    admitted: bool = False
    admitted_at: datetime | None = None
    pods_ready: bool = False
    pending_reason: str = ""
    pending_message: str = ""
    evicted_at: datetime | None = None
    evicted_reason: str = ""
    evicted_message: str = ""


@dataclass(frozen=True)
class Facts:
    """Everything that determines a phase. Times are aware UTC."""

    now: datetime
    released: bool = False
    nothing_left: bool = False
    starts_at: datetime | None = None
    number_wait: str = ""
    """Why it has no number among its project's live allocations although its start time has passed; "" if it has."""
    not_before: datetime | None = None
    releasing_failed_start: bool = False
    needs_attention: bool = False
    lease: LeaseFacts | None = None
    missing: str = ""
    """What must be free for its quota, such as ``1 more GPU``; "" if it is not known."""
    held: bool = False
    listed: bool = False
    """Whether the admission policies let tenants' pods use it."""
    unpublished: str = ""
    """What it holds and no node publishes any more."""
    claim_deleted: bool = False
    leaving_until: datetime | None = None
    start_by: datetime | None = None
    blocked: str = ""
    """Why its claim is kept from the scheduler; "" if it is not."""
    start_reason: str = ""
    start_message: str = ""


class PhaseRule(NamedTuple):
    """A rule that gives a phase if its condition holds.

    ``reason`` and ``message`` are texts, or functions of the facts. ``until`` returns the time at which the phase ends
    without another event.
    """

    sentence: str
    holds: Callable[[Facts], bool]
    phase: Phase
    reason: str | Callable[[Facts], str]
    message: str | Callable[[Facts], str]
    until: Callable[[Facts], datetime | None] = lambda _: None


def _lease(facts: Facts) -> LeaseFacts:
    return facts.lease or LeaseFacts()


def _starting(facts: Facts) -> str:
    """Return the message of an admitted allocation.

    A hold without a deadline is a count of the device plugin, which the API server accepts or refuses at once (ADR 9).
    """
    if facts.held:
        return "The slices are assigned. Pods can use them as soon as the admission policies allow it."
    if facts.start_by is None:
        return "Admitted by Kueue; the slices are being reserved."
    why = f", since {facts.blocked}" if facts.blocked else ""
    return (
        f"Admitted by Kueue, waiting for a device until {facts.start_by:%Y-%m-%d %H:%M:%S} UTC{why}; then it releases "
        "its quota and queues again. If that happens, ask for fewer on one node or for another slice."
    )


def _active(facts: Facts) -> str:
    if not facts.unpublished:
        return "Your GPUs are ready."
    return (
        f"No node publishes {facts.unpublished} any more, so pods may not start on it. It stays held and charged. "
        "Release it and request again, or ask the platform team."
    )


PHASES: tuple[PhaseRule, ...] = (
    PhaseRule(
        "its release was requested, or it expired, and nothing of it is left on the cluster",
        lambda f: f.released and f.nothing_left,
        Phase.ENDED,
        "",
        "",
    ),
    PhaseRule(
        "its release was requested, or it expired, and something of it is still on the cluster",
        lambda f: f.released,
        Phase.RELEASING,
        "cleaning_up",
        "Pods first, then the slice, then the lease; charged until the slice is free.",
    ),
    PhaseRule(
        "its start is in the future",
        lambda f: f.starts_at is not None and f.starts_at > f.now,
        Phase.SCHEDULED,
        "starts_later",
        lambda f: f"Starts at {f.starts_at:%Y-%m-%d %H:%M} UTC." if f.starts_at else "",
        lambda f: f.starts_at,
    ),
    PhaseRule(
        "its start has come, and its project or its member has reached the limit of live allocations",
        lambda f: bool(f.number_wait),
        Phase.QUEUED,
        "allocation_limit",
        lambda f: f.number_wait,
    ),
    PhaseRule(
        "it could not start three times, no device fitted for example, so a person has to decide",
        lambda f: f.needs_attention,
        Phase.SUSPENDED,
        lambda f: f.start_reason or "no_fitting_device",
        lambda f: (
            f.start_message or "No device fitted three times. Try again, or release it and ask for another slice."
        ),
    ),
    PhaseRule(
        "it could not start, no device fitted for example, and it waits before it queues again",
        lambda f: f.releasing_failed_start or (f.not_before is not None and f.not_before > f.now),
        Phase.QUEUED,
        lambda f: f.start_reason or "no_fitting_device",
        lambda f: f.start_message or "No device fitted; it queues again after a pause.",
        lambda f: f.not_before,
    ),
    PhaseRule(
        "Kueue evicted it while slices are held: the notice period runs",
        lambda f: f.held and _lease(f).evicted_at is not None,
        Phase.LEAVING,
        lambda f: f"evicted_{_lease(f).evicted_reason.lower()}",
        lambda f: (
            f"{_lease(f).evicted_message} Pods end at {f.leaving_until:%Y-%m-%d %H:%M:%S} UTC."
            if f.leaving_until
            else _lease(f).evicted_message
        ),
        lambda f: f.leaving_until,
    ),
    PhaseRule(
        "the cluster shows the slices held, and pods may use them",
        lambda f: f.held and f.listed,
        Phase.ACTIVE,
        lambda f: "device_not_published" if f.unpublished else "held",
        _active,
    ),
    PhaseRule(
        "its claim was deleted in use: its pods end, then it is created again",
        lambda f: f.claim_deleted,
        Phase.STARTING,
        "claim_deleted",
        "Its ResourceClaim was deleted, so its pods were ended. It is created again, if necessary on another device.",
    ),
    PhaseRule(
        "Kueue admitted its lease, and the slices are not yet held",
        lambda f: _lease(f).admitted and _lease(f).evicted_at is None,
        Phase.STARTING,
        "admitted",
        _starting,
        lambda f: f.start_by,
    ),
    PhaseRule(
        "its lease waits for quota",
        lambda f: True,
        Phase.QUEUED,
        lambda f: _lease(f).pending_reason or "submitted",
        lambda f: reasons.queued(_lease(f).pending_reason, _lease(f).pending_message, missing=f.missing).message,
    ),
)


DERIVED = tuple(phase for phase in Phase if any(rule.phase is phase for rule in PHASES))
"""The phases that an allocation can have now; the others are reserved for approvals and the waitlist."""


class Verdict(NamedTuple):
    """A phase with its machine reason, its message, and the time at which it ends without another event."""

    phase: Phase
    reason: str
    message: str
    until: datetime | None = None


def derive(facts: Facts) -> Verdict:
    """Return the phase of an allocation, with its machine reason and its message."""
    rule = next(rule for rule in PHASES if rule.holds(facts))
    reason = rule.reason if isinstance(rule.reason, str) else rule.reason(facts)
    message = rule.message if isinstance(rule.message, str) else rule.message(facts)
    return Verdict(rule.phase, reason, message, rule.until(facts))


def table() -> str:
    """Return the rules as a Markdown table, in the order in which they are tried."""
    lines = ["| if … | phase |", "|---|---|"]
    lines += [f"| {rule.sentence} | `{rule.phase}` |" for rule in PHASES]
    return "\n".join(lines)
