"""The rights of the application's database role: read and write, but only read and add in tables that are append-only.

Migrations run as the role that owns the tables; web, worker, beat and watcher as another one, which owns nothing.
"""

import re
from collections.abc import Iterator

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from portal.core.models import AppendOnly

READ_ONLY = ("django_migrations",)
NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def grant(role: str) -> None:
    """Grant `role`, which exists, its rights on all tables. Run by the owner, after each migration.

    Raises ImproperlyConfigured if no grant can keep `role` from changing the append-only tables, or if tables belong to
    another role than the connected one: PostgreSQL then grants nothing, and only warns.
    """
    if not NAME.fullmatch(role):
        raise ImproperlyConfigured(f"{role} is no name of a role; use lower-case letters, digits and underscores.")
    with transaction.atomic(), connection.cursor() as cursor:
        if tables := _tables_of_others():
            raise ImproperlyConfigured(
                f"Only their owner can grant rights on {', '.join(tables)}. "
                "Use the DATABASE_URL of the role that migrates."
            )
        for statement in _statements(connection.ops.quote_name(role)):
            cursor.execute(statement)
        if tables := changes_allowed(role):
            why = "it owns them, or inherits the right to"
            raise ImproperlyConfigured(
                f"{role} may still change or delete rows of {', '.join(tables)}: {why}. Use a role of its own."
            )


def append_only() -> dict[str, tuple[str, ...]]:
    """Return the append-only tables, each with the columns that the application's role may update."""
    return {model._meta.db_table: model.updatable_columns for model in _models()}


def withdrawable() -> list[str]:
    """Return the append-only tables of which the application's role may delete rows by which nothing was computed yet.

    A trigger refuses it the others, `keep_what_has_begun` (migrations 0006 of `quotas.costs` and 0009 of
    `portal.tenants`).
    """
    return [model._meta.db_table for model in _models() if model.may_be_withdrawn]


def _models() -> list[type[AppendOnly]]:
    return [model for model in apps.get_models() if issubclass(model, AppendOnly)]


def changes_allowed(role: str = "") -> list[str]:
    """Return the append-only tables whose rows `role` (default: the connected one) could change, remove or replace,
    but for the columns that it may update, and for rows that have not begun.
    """
    updatable = [f"{table}.{column}" for table, columns in append_only().items() for column in columns]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT relname::text FROM pg_class, (SELECT coalesce(nullif(%s, ''), current_user)::regrole AS oid) AS who
            WHERE pg_class.oid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
            AND (has_table_privilege(who.oid, pg_class.oid, 'TRUNCATE, TRIGGER')
                 OR (has_table_privilege(who.oid, pg_class.oid, 'DELETE') AND NOT EXISTS (
                     SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND tgname = 'keep_what_has_begun'
                     AND tgenabled IN ('O', 'A')))
                 OR pg_has_role(who.oid, relowner, 'USAGE')
                 OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
                            AND has_column_privilege(who.oid, attrelid, attnum, 'UPDATE')
                            AND concat(relname, '.', attname) <> ALL (%s::text[])))
            ORDER BY relname
            """,
            [role, list(append_only()), updatable],
        )
        return [name for (name,) in cursor.fetchall()]


def _tables_of_others() -> list[str]:
    """Return the first tables whose rights the connected role cannot grant."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            " AND NOT pg_has_role(relowner, 'USAGE') ORDER BY relname LIMIT 3"
        )
        return [name for (name,) in cursor.fetchall()]


def _statements(role: str) -> Iterator[str]:
    """Yield what the owner executes; to revoke a right on a table revokes it on each of its columns too."""
    yield f"GRANT USAGE ON SCHEMA public TO {role}"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}"
    yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
    for table, columns in append_only().items():
        kept = "UPDATE, TRUNCATE" if table in withdrawable() else "UPDATE, DELETE, TRUNCATE"
        yield f"REVOKE {kept} ON {table} FROM {role}"
        if columns:
            yield f"GRANT UPDATE ({', '.join(map(connection.ops.quote_name, columns))}) ON {table} TO {role}"
    for table in READ_ONLY:
        yield f"REVOKE INSERT, UPDATE, DELETE ON {table} FROM {role}"
