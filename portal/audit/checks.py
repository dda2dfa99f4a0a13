"""Django system checks of the database role that the portal uses."""

from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from portal.audit import grants


@register(Tags.database)
def audit_log_is_protected(**_: Any) -> list[CheckMessage]:
    """Warn unless the application's role may only add to the audit log."""
    try:
        tables = grants.changes_allowed()
    except DatabaseError as error:
        return [Warning(f"The database does not answer: {error}", id="core.W002")]
    if not tables:
        return []
    return [
        Warning(
            f"The role of DATABASE_URL may change {' and '.join(tables)}, so the audit log is not protected from it.",
            hint="Right for migrations only. For web, worker, beat and watcher: a role that owns nothing, with the "
            "rights of `manage.py grant ROLE` (docs/guide/audit.md).",
            id="core.W001",
        )
    ]
