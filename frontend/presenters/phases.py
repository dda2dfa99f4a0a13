"""A phase as people see it: a word, an icon's shape and a tone; never a colour alone."""

from dataclasses import dataclass

from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation


@dataclass(frozen=True)
class Look:
    """``icon`` is a symbol of ``icons.svg``; ``tone`` one of the tones of ``tokens.css``."""

    word: str
    icon: str
    tone: str


LOOKS = {
    Phase.PENDING_APPROVAL: Look("Waits for approval", "hand", "wait"),
    Phase.SCHEDULED: Look("Scheduled", "calendar", "wait"),
    Phase.WAITLISTED: Look("On the waitlist", "hourglass", "wait"),
    Phase.OFFERED: Look("Offered to you", "hand", "warn"),
    Phase.QUEUED: Look("Queued", "hourglass", "wait"),
    Phase.STARTING: Look("Starting", "arrow-up", "move"),
    Phase.ACTIVE: Look("Active", "check", "good"),
    Phase.LEAVING: Look("Leaving", "alert", "warn"),
    Phase.SUSPENDED: Look("Needs your answer", "hand", "warn"),
    Phase.RELEASING: Look("Releasing", "arrow-down", "move"),
    Phase.ENDED: Look("Ended", "square", "quiet"),
}
ENDINGS = {
    Outcome.WITHDRAWN: Look("Withdrawn", "square", "quiet"),
    Outcome.CANCELLED: Look("Cancelled", "square", "quiet"),
    Outcome.RELEASED: Look("Released", "square", "quiet"),
    Outcome.EXPIRED: Look("Expired", "clock", "quiet"),
    Outcome.EVICTED: Look("Evicted", "alert", "bad"),
    Outcome.COMPLETED: Look("Completed", "check", "quiet"),
    Outcome.FAILED: Look("Failed", "cross", "bad"),
    Outcome.DENIED: Look("Denied", "cross", "bad"),
}
FITS = {
    "now": Look("Fits now", "check", "good"),
    "queue": Look("Will queue", "hourglass", "wait"),
    "never": Look("Does not fit", "cross", "bad"),
}


def look(row: Allocation) -> Look:
    """The look of the row's phase; once ended, of its outcome. Released but not yet reconciled shows as such."""
    if row.outcome:
        return ENDINGS[Outcome(row.outcome)]
    if row.desired == Allocation.Desired.RELEASED:
        return LOOKS[Phase.RELEASING]
    return LOOKS[Phase(row.phase)]
