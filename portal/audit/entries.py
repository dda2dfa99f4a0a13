"""Writes audit entries: who did what to what, before and after, and by which channel; a row and a log line.

Rows are only ever added: `portal.audit.chain` detects changes, `portal.audit.grants` prevents them.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from portal.audit import context
from portal.core import clock
from portal.core.models import AuditEntry
from portal.core.writing import write_rows
from portal.events import writing as events

_log = structlog.get_logger("audit")


def audit(
    actor: str,
    action: str,
    target: str,
    *,
    team: str = "",
    project: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    has_event: bool = True,
) -> None:
    """Record that `actor` (a username or `system`) did `action` (`<kind of target>.<verb>`) to `target`.

    `team` and `project` are slugs: leads read the entries of their team, others are the platform's. `before` and
    `after` are JSON values without secrets. The entry is part of the caller's transaction, and so is its event; without
    `has_event` the caller writes another one of what happened.
    """
    row = entry(actor, action, target, team=team, project=project, before=before, after=after)
    write_rows([row, events.of_entry(row)] if has_event else [row])
    log(row)


def entry(
    actor: str,
    action: str,
    target: str,
    *,
    team: str = "",
    project: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Return the entry that `audit` records, not saved, for callers that write it with other rows and then `log` it."""
    facts = context.current()
    request_id = facts.pop("request_id", "")
    return AuditEntry(
        at=clock.now(),
        actor=actor,
        action=action,
        target=target,
        team=team,
        project=project,
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
        source=facts,
        request_id=request_id,
    )


def log(row: AuditEntry) -> None:
    """Log an entry that was saved."""
    values = {name: getattr(row, name) for name in ("actor", "target", "before", "after", "source")}
    _log.info(row.action, entry=row.pk, **values)
