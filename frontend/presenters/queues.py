"""Entries of a queue as lines of a table."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse

from allocations.domain.phases import Phase
from allocations.queues.entries import Entry
from allocations.queues.jobs import State
from allocations.queues.queue import Ahead, Place
from frontend.presenters.phases import LOOKS, Look

JOB_LOOKS = {
    State.QUEUED: Look("Queued", "hourglass", "wait"),
    State.ADMITTED: Look("Admitted", "arrow-up", "move"),
    State.RUNNING: Look("Running", "check", "good"),
    State.FINISHED: Look("Finished", "square", "quiet"),
    State.FAILED: Look("Failed", "cross", "bad"),
}


@dataclass(frozen=True)
class Line:
    """``place`` and ``ahead`` are empty for what has quota."""

    entry: Entry
    url: str
    look: Look
    what: str
    place: str
    ahead: str

    @property
    def is_job(self) -> bool:
        return self.entry.kind == "job"


def line(entry: Entry, place: Place | None = None, ahead: Ahead | None = None) -> Line:
    return Line(
        entry=entry,
        url=reverse("job" if entry.kind == "job" else "allocation", args=[entry.id]),
        look=JOB_LOOKS[State(entry.state)] if entry.kind == "job" else LOOKS[Phase(entry.state)],
        what=asks(entry.asks),
        place=f"{place.position} of {place.of}" if place else "",
        ahead=f"{ahead.entries} before it: {asks(ahead.asks)}" if ahead and ahead.entries else "",
    )


def asks(amounts: Mapping[str, int]) -> str:
    """As "2 × l40s/whole, 4 × nvidia.com/gpu"."""
    return ", ".join(f"{count} × {what}" for what, count in sorted(amounts.items()))
