"""The rights of the application's database role: read and write, but only read and add in the audit log.

Migrations run as the role that owns the tables; web, worker, beat and watcher as another one, which owns nothing.
"""

import re

from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from portal.core.models import AuditEntry, AuditSeal

ADDED_ONLY = (AuditEntry._meta.db_table, AuditSeal._meta.db_table)
READ_ONLY = ("django_migrations",)
NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
USE = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
)
BUT = (
    *(f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {{role}}" for table in ADDED_ONLY),
    *(f"REVOKE INSERT, UPDATE, DELETE ON {table} FROM {{role}}" for table in READ_ONLY),
)


def grant(role: str) -> None:
    """Grant `role`, which exists, its rights on all tables. Run by the owner, after each migration.

    Raises ImproperlyConfigured if no grant can keep `role` from changing the audit log.
    """
    if not NAME.fullmatch(role):
        raise ImproperlyConfigured(f"{role} is no name of a role; use lower-case letters, digits and underscores.")
    with transaction.atomic(), connection.cursor() as cursor:
        for words in (*USE, *BUT):
            cursor.execute(words.format(role=f'"{role}"'))
        if tables := changes_allowed(role):
            why = "it owns them, or inherits the right to"
            raise ImproperlyConfigured(f"{role} may still change {' and '.join(tables)}: {why}. Use a role of its own.")


def changes_allowed(role: str = "") -> list[str]:
    """Return the tables of the audit log whose rows `role` (default: the connected one) could change, remove or
    replace.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT relname::text FROM pg_class, (SELECT coalesce(nullif(%s, ''), current_user)::regrole AS oid) AS who
            WHERE pg_class.oid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
            AND (has_table_privilege(who.oid, pg_class.oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER')
                 OR pg_has_role(who.oid, relowner, 'USAGE'))
            ORDER BY relname
            """,
            [role, list(ADDED_ONLY)],
        )
        return [name for (name,) in cursor.fetchall()]
