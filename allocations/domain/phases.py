"""Phases of an allocation: one ordered list of (predicate, phase, reason, message) over frozen facts.

The first predicate that holds gives the phase. The same list renders the table in ``docs/guide/phases.md``.
Pure: no clock, no database, no settings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from allocations.domain import reasons


class Phase(StrEnum):
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
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"
    RELEASED = "released"
    EXPIRED = "expired"
    EVICTED = "evicted"
    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"


class Ending(StrEnum):
    """Why an allocation is to end: stored with the intent, becomes the outcome once nothing is left."""

    PERSON = "person"
    EXPIRED = "expired"
    EVICTED = "evicted"
    FAILED = "failed"


def outcome(ending: Ending, *, was_held: bool) -> Outcome:
    if ending is Ending.PERSON:
        return Outcome.RELEASED if was_held else Outcome.CANCELLED
    return Outcome(ending.value)


FAILED_STARTS = {
    "no_fitting_device": "No device fitted within the start deadline",
    "start_refused": "The cluster refused what would hold it",
    "more_than_counted": "It was given more than its lease counts",
}
"""Why an admitted allocation could not start, by reason."""
LACKING = {"Insufficient cpu": "CPU", "Insufficient memory": "memory", "Too many pods": "pod slots"}
NO_DEVICE = "cannot allocate all claims"
"""What kube-scheduler says of nodes that a pod does not fit, beside how many nodes it says that of."""


def failed_start(reason: str, said: str) -> str:
    """Why it could not start, in a sentence without its full stop; ``said``: the cluster's own words of that."""
    lacking = [name for words, name in LACKING.items() if words in said]
    if reason != "no_fitting_device" or not lacking:
        return FAILED_STARTS[reason]
    named = " and ".join(filter(None, (", ".join(lacking[:-1]), lacking[-1])))
    if NO_DEVICE in said:
        return f"{FAILED_STARTS[reason]}: some nodes had none, others no {named} left"
    return f"Its nodes had no {named} left within the start deadline"


@dataclass(frozen=True)
class LeaseFacts:
    """The lease (Kueue Workload), from its conditions."""

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
    """All that decides a phase. Times are aware UTC."""

    now: datetime
    released: bool = False
    nothing_left: bool = False
    starts_at: datetime | None = None
    number_wait: str = ""
    """Why it has no place among its project's live allocations though its start has come."""
    not_before: datetime | None = None
    releasing_failed_start: bool = False
    needs_attention: bool = False
    lease: LeaseFacts | None = None
    held: bool = False
    listed: bool = False
    """Whether the guard lets tenants' pods use it."""
    claim_deleted: bool = False
    leaving_until: datetime | None = None
    start_by: datetime | None = None
    start_reason: str = ""
    start_message: str = ""


class Row(NamedTuple):
    """One line of the table. ``reason`` and ``message`` are texts, or functions of the facts; ``until`` is when time
    alone ends the phase."""

    sentence: str
    holds: Callable[[Facts], bool]
    phase: Phase
    reason: str | Callable[[Facts], str]
    message: str | Callable[[Facts], str]
    until: Callable[[Facts], datetime | None] = lambda _: None


def _lease(facts: Facts) -> LeaseFacts:
    return facts.lease or LeaseFacts()


def _starting(facts: Facts) -> str:
    """A hold that has no deadline is a count, which the API server takes or refuses at once (ADR 9)."""
    if facts.held:
        return "The slices are held. Pods can use them as soon as the admission policies know."
    if facts.start_by is None:
        return "Admitted by Kueue; the slices are being taken. A count has no deadline: it is written, or refused."
    return (
        f"Admitted by Kueue, waiting for a device until {facts.start_by:%H:%M:%S} UTC; then it gives its place back "
        "and queues again. If so, ask for fewer on one node or for another slice."
    )


PHASES: tuple[Row, ...] = (
    Row(
        "its release was asked, or it expired, and nothing of it is left on the cluster",
        lambda f: f.released and f.nothing_left,
        Phase.ENDED,
        "",
        "",
    ),
    Row(
        "its release was asked, or it expired, and something of it is still on the cluster",
        lambda f: f.released,
        Phase.RELEASING,
        "cleaning_up",
        "Pods first, then the slice, then the lease; charged until the slice is seen free.",
    ),
    Row(
        "its start is in the future",
        lambda f: f.starts_at is not None and f.starts_at > f.now,
        Phase.SCHEDULED,
        "starts_later",
        lambda f: f"Starts at {f.starts_at:%Y-%m-%d %H:%M} UTC." if f.starts_at else "",
        lambda f: f.starts_at,
    ),
    Row(
        "its start has come, and its project or its member has as many live allocations as may be",
        lambda f: bool(f.number_wait),
        Phase.QUEUED,
        "allocation_limit",
        lambda f: f.number_wait,
    ),
    Row(
        "it could not start three times, no device fitted for example, so the owner is asked",
        lambda f: f.needs_attention,
        Phase.SUSPENDED,
        lambda f: f.start_reason or "no_fitting_device",
        lambda f: (
            f.start_message or "No device fitted three times. Try again, or release it and ask for another slice."
        ),
    ),
    Row(
        "it could not start, no device fitted for example, and it waits before it queues again",
        lambda f: f.releasing_failed_start or (f.not_before is not None and f.not_before > f.now),
        Phase.QUEUED,
        lambda f: f.start_reason or "no_fitting_device",
        lambda f: f.start_message or "No device fitted; it queues again after a pause.",
        lambda f: f.not_before,
    ),
    Row(
        "Kueue took the admission back while slices are held: the notice runs",
        lambda f: f.held and _lease(f).evicted_at is not None,
        Phase.LEAVING,
        lambda f: f"evicted_{_lease(f).evicted_reason.lower()}",
        lambda f: (
            f"{_lease(f).evicted_message} Pods end at {f.leaving_until:%H:%M:%S} UTC."
            if f.leaving_until
            else _lease(f).evicted_message
        ),
        lambda f: f.leaving_until,
    ),
    Row(
        "the cluster shows the slices held, and pods may use them",
        lambda f: f.held and f.listed,
        Phase.ACTIVE,
        "held",
        "The slices are held.",
    ),
    Row(
        "its claim was deleted in use: pods end, then it comes back",
        lambda f: f.claim_deleted,
        Phase.STARTING,
        "claim_deleted",
        "Its ResourceClaim was deleted, so its pods were ended. It comes back, on another device if need be.",
    ),
    Row(
        "Kueue admitted its lease, and the slices are not yet held",
        lambda f: _lease(f).admitted and _lease(f).evicted_at is None,
        Phase.STARTING,
        "admitted",
        _starting,
        lambda f: f.start_by,
    ),
    Row(
        "its lease waits for quota",
        lambda f: True,
        Phase.QUEUED,
        lambda f: _lease(f).pending_reason or "submitted",
        lambda f: reasons.queued(_lease(f).pending_reason, _lease(f).pending_message).message,
    ),
)


class Verdict(NamedTuple):
    phase: Phase
    reason: str
    message: str
    until: datetime | None = None


def derive(facts: Facts) -> Verdict:
    """The phase of an allocation, with its machine reason and its sentence."""
    row = next(row for row in PHASES if row.holds(facts))
    reason = row.reason if isinstance(row.reason, str) else row.reason(facts)
    message = row.message if isinstance(row.message, str) else row.message(facts)
    return Verdict(row.phase, reason, message, row.until(facts))


def table() -> str:
    """The phases as a Markdown table, in the order in which they are tried."""
    lines = ["| if … | phase |", "|---|---|"]
    lines += [f"| {row.sentence} | `{row.phase}` |" for row in PHASES]
    return "\n".join(lines)
