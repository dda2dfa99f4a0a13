"""What `manage.py check --database default` says of the database the portal connects to."""

from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from portal.audit import grants


@register(Tags.database)
def audit_log_is_protected(**_: Any) -> list[CheckMessage]:
    """The application's role may add to the audit log, and nothing else."""
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
