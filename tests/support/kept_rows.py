"""Rows that many tests start from: the portal writes them once in a process, and each later test gets a copy.

A copy takes milliseconds where a month of the demo takes twenty seconds.
"""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from django.db import connection, transaction
from psycopg import sql

MIGRATED = ("django_content_type", "auth_permission", "django_migrations")
CLUSTERS = "clusters_cluster"
"""Has the local cluster in every test."""

_kept: dict[Hashable, tuple[dict[str, bytes], list[tuple[str, int | None]]]] = {}


def once(key: Hashable, write: Callable[[], None]) -> None:
    """Have the rows in the database that `write` writes into an empty one.

    `key` names what they depend on. If the database has rows already, `write` adds to them.
    """
    with transaction.atomic(), connection.cursor() as wrapped:
        cursor = wrapped.cursor
        if _has_rows(cursor):
            write()
        elif key not in _kept:
            write()
            _kept[key] = {name: _read(cursor, name) for name in _tables()}, _sequences(cursor)
        else:
            rows, sequences = _kept[key]
            cursor.execute("SET LOCAL session_replication_role = replica")  # rows of a table may precede their parents
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(CLUSTERS)))
            for name, data in rows.items():
                with cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(name))) as copy:
                    copy.write(data)
            cursor.execute("SET LOCAL session_replication_role = origin")
            for name, last in sequences:
                cursor.execute("SELECT setval(%s, %s, %s)", (name, last or 1, last is not None))


@cache
def _tables() -> list[str]:
    return [name for name in connection.introspection.table_names() if name not in MIGRATED]


def _has_rows(cursor: Any) -> bool:
    tables = [sql.SQL("EXISTS (TABLE {})").format(sql.Identifier(name)) for name in _tables() if name != CLUSTERS]
    cursor.execute(sql.SQL("SELECT ") + sql.SQL(" OR ").join(tables))
    return bool(cursor.fetchone()[0])


def _read(cursor: Any, table: str) -> bytes:
    with cursor.copy(sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(sql.Identifier(table))) as copy:
        return b"".join(bytes(each) for each in copy)


def _sequences(cursor: Any) -> list[tuple[str, int | None]]:
    cursor.execute("SELECT format('%I.%I', schemaname, sequencename), last_value FROM pg_sequences")
    return list(cursor.fetchall())
