"""Signs of life: a row per process kind, written by the work itself, so that a stuck process falls silent."""

from datetime import datetime

from portal.core import clock
from portal.core.models import Heartbeat


def beat(name: str) -> None:
    """`name` (`worker`, `watcher`) did its work just now."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": clock.now()})


def last() -> dict[str, datetime]:
    """When each name last beat."""
    return dict(Heartbeat.objects.values_list("name", "at"))
