"""Who changed what: one log line per change, on the logger `audit`."""

from collections.abc import Mapping
from typing import Any

import structlog

_log = structlog.get_logger("audit")


def audit(
    actor: str,
    action: str,
    target: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    source: str = "",
) -> None:
    """Write that `actor` (a username or `system`) did `action` to `target`; values hold no secrets."""
    _log.info(action, actor=actor, target=target, before=before or {}, after=after or {}, source=source)
