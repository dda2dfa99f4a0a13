"""Queue entries as lines of a table."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from allocations.domain.phases import Phase
from allocations.queues.entries import Entry
from allocations.queues.jobs import State
from allocations.queues.queue import EntriesAhead, QueuePosition
from frontend.presenters.phases import BADGES, PhaseBadge

JOB_BADGES = {
    State.QUEUED: PhaseBadge("Queued", "hourglass", "wait"),
    State.ADMITTED: PhaseBadge("Admitted", "arrow-up", "move"),
    State.RUNNING: PhaseBadge("Running", "check", "good"),
    State.FINISHED: PhaseBadge("Finished", "square", "quiet"),
    State.FAILED: PhaseBadge("Failed", "cross", "bad"),
}


@dataclass(frozen=True)
class QueueLine:
    """One queue entry. ``place`` and ``ahead`` are empty if it has quota."""

    entry: Entry
    url: str
    badge: PhaseBadge
    what: str
    place: str
    ahead: str

    @property
    def is_job(self) -> bool:
        return self.entry.kind == "job"


def line(entry: Entry, place: QueuePosition | None = None, ahead: EntriesAhead | None = None) -> QueueLine:
    return QueueLine(
        entry=entry,
        url=reverse("job" if entry.kind == "job" else "allocation", args=[entry.id]),
        badge=JOB_BADGES[State(entry.state)] if entry.kind == "job" else BADGES[Phase(entry.state)],
        what=requests(entry.requests),
        place=f"{place.position} of {place.of}" if place else "",
        ahead=f"{ahead.entries} ahead: {requests(ahead.requests)}" if ahead and ahead.entries else "",
    )


def requests(amounts: Mapping[str, int]) -> str:
    """Return amounts as "2 × l40s/whole, 4 × nvidia.com/gpu"."""
    return ", ".join(f"{count} × {what}" for what, count in sorted(amounts.items()))
