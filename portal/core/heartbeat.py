"""Heartbeats: a row per kind of process, written by the work itself, so that a stuck process is detected."""

from datetime import datetime

from portal.core import clock
from portal.core.models import Heartbeat


def beat(name: str) -> None:
    """Record that `name` (`worker`, `watcher`) works now."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": clock.now()})


def last() -> dict[str, datetime]:
    """Return the time of each last heartbeat, by name."""
    return dict(Heartbeat.objects.values_list("name", "at"))
