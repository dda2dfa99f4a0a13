"""Django system checks of the database role that the portal uses."""

from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from portal.audit import grants


@register(Tags.database)
def append_only_tables_are_protected(**_: Any) -> list[CheckMessage]:
    """Warn unless the application's role may only add to the tables that are append-only."""
    try:
        tables = grants.changes_allowed()
    except DatabaseError as error:
        return [Warning(f"The database does not answer: {error}", id="core.W002")]
    if not tables:
        return []
    return [
        Warning(
            f"The role of DATABASE_URL may change or delete rows of {', '.join(tables)}, which are append-only.",
            hint="Right for migrations only. For web, worker, beat and watcher: a role that owns nothing, with the "
            "rights of `manage.py grant ROLE` (docs/operate/audit.md).",
            id="core.W001",
        )
    ]
