"""Makes the events that are written together with their records, and nothing else makes any."""

from typing import Any

from portal.core.writing import KeyOf
from portal.events.models import Event


def of_entry(entry: Any) -> Event:
    """Return the event of an audit entry that is written in the same statement before it."""
    return Event(
        at=entry.at,
        kind=entry.action,
        actor=entry.actor,
        subject=entry.target,
        project=entry.project,
        team=entry.team,
        scope=Event.Scope.AUDIT,
        audit_entry=KeyOf(entry),
    )
