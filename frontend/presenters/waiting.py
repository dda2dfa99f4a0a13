"""What a queued allocation waits for, and what would help."""

from dataclasses import dataclass
from datetime import datetime

from allocations.domain import reasons
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests.forecast import ExpectedRelease
from frontend.presenters.presets import again_url
from portal.tenants.models import Team

FOR_QUOTA = "WaitingForQuota"


@dataclass(frozen=True)
class Waiting:
    """``at`` is when enough is expected to be free, None if unknown; ``what`` is then the end of which allocation."""

    hint: str
    at: datetime | None
    what: str
    instead_url: str


def waiting(row: Allocation, release: ExpectedRelease | None) -> Waiting | None:
    """Return what would help a queued allocation; None if it is not queued. ``release`` is the one that it needs."""
    if row.phase != Phase.QUEUED or row.desired != Allocation.Desired.HELD:
        return None
    return Waiting(
        hint=reasons.queued(row.reason).hint,
        at=release.at if release else None,
        what=_name(release, row.project.team) if release else "",
        instead_url=again_url(row) if row.reason == FOR_QUOTA and row.claim is None else "",
    )


def _name(release: ExpectedRelease, team: Team) -> str:
    """Return the allocation's name to its own team; others learn that it is another team's."""
    return release.name if release.team == team else "an allocation of another team"
