"""Heartbeats: a row per kind of process, written by the work itself, so that a stuck process is detected."""

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

from portal.core import clock
from portal.core.models import Heartbeat
from portal.core.reading import Columns, read_tables

# One statement: update_or_create takes four.
BEAT = "INSERT INTO core_heartbeat (name, at) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET at = excluded.at"


def beat(name: str) -> None:
    """Record that `name` (`worker`, `watcher`) works now."""
    with connection.cursor() as cursor:
        cursor.execute(BEAT, [name, clock.now()])


def last() -> dict[str, datetime]:
    """Return the time of each last heartbeat, by name."""
    return of_rows(*read_tables(part()))


def part() -> Columns:
    """Return what to read for ``of_rows``."""
    return Columns(Heartbeat.objects.all(), ("name", "at"))


def of_rows(rows: Iterable[tuple[str, str]]) -> dict[str, datetime]:
    """Return what ``last`` returns, by the rows of ``part``."""
    return {name: datetime.fromisoformat(at) for name, at in rows}
