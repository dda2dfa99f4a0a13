"""Who did what to what, before and after, and from where: a row in the caller's transaction, and a log line.

Rows are only ever added: `portal.audit.chain` shows that none was changed, `portal.audit.grants` who may.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from portal.audit import context
from portal.core import clock
from portal.core.models import AuditEntry

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
) -> None:
    """Note that `actor` (a username or `system`) did `action` (`<kind of target>.<verb>`) to `target`.

    `team` and `project` are slugs: leads read what names their team, other entries are the platform's. `before` and
    `after` are what Django can write as JSON, and hold no secrets. Nothing stays noted of what is rolled back.
    """
    facts = context.current()
    request_id = facts.pop("request_id", "")
    entry = AuditEntry.objects.create(
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
    _log.info(action, entry=entry.pk, actor=actor, target=target, before=before, after=after, source=facts)
