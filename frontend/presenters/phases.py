"""Badges of phases: a word, an icon and a tone; never a colour alone."""

from dataclasses import dataclass

from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation


@dataclass(frozen=True)
class PhaseBadge:
    """``icon`` is a symbol of ``icons.svg``; ``tone`` one of the tones of ``tokens.css``."""

    word: str
    icon: str
    tone: str


BADGES = {
    Phase.PENDING_APPROVAL: PhaseBadge("Waiting for approval", "hand", "wait"),
    Phase.SCHEDULED: PhaseBadge("Scheduled", "calendar", "wait"),
    Phase.WAITLISTED: PhaseBadge("On the waitlist", "hourglass", "wait"),
    Phase.OFFERED: PhaseBadge("Offered to you", "hand", "warn"),
    Phase.QUEUED: PhaseBadge("Queued", "hourglass", "wait"),
    Phase.STARTING: PhaseBadge("Starting", "arrow-up", "move"),
    Phase.ACTIVE: PhaseBadge("Active", "check", "good"),
    Phase.LEAVING: PhaseBadge("Evicting", "alert", "warn"),
    Phase.SUSPENDED: PhaseBadge("Action needed", "hand", "warn"),
    Phase.RELEASING: PhaseBadge("Releasing", "arrow-down", "move"),
    Phase.ENDED: PhaseBadge("Ended", "square", "quiet"),
}
ENDINGS = {
    Outcome.WITHDRAWN: PhaseBadge("Withdrawn", "square", "quiet"),
    Outcome.CANCELLED: PhaseBadge("Cancelled", "square", "quiet"),
    Outcome.RELEASED: PhaseBadge("Released", "square", "quiet"),
    Outcome.EXPIRED: PhaseBadge("Expired", "clock", "quiet"),
    Outcome.EVICTED: PhaseBadge("Evicted", "alert", "bad"),
    Outcome.COMPLETED: PhaseBadge("Completed", "check", "quiet"),
    Outcome.FAILED: PhaseBadge("Failed", "cross", "bad"),
    Outcome.DENIED: PhaseBadge("Denied", "cross", "bad"),
}
FITS = {
    "now": PhaseBadge("Fits now", "check", "good"),
    "queue": PhaseBadge("Will queue", "hourglass", "wait"),
    "later": PhaseBadge("Will be scheduled", "calendar", "wait"),
    "never": PhaseBadge("Does not fit", "cross", "bad"),
}


def badge(row: Allocation) -> PhaseBadge:
    """Return the badge of the row's phase, or of its outcome once it has ended; a release shows at once."""
    if row.outcome:
        return ENDINGS[Outcome(row.outcome)]
    if row.desired == Allocation.Desired.RELEASED:
        return BADGES[Phase.RELEASING]
    return BADGES[Phase(row.phase)]
