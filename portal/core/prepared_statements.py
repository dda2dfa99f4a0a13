"""Statements that PostgreSQL parses and plans once in a connection: those of `portal.core.reading` and
`portal.core.writing`, of which reconciles, batches and POSTs take longer to plan than to run (docs/adr/0046).
"""

from typing import Any

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper


def preparing_cursor() -> CursorWrapper:
    """Return a cursor that sends values apart from the statement, so that psycopg prepares what is executed repeatedly.

    PostgreSQL must be able to tell the type of each parameter.
    """
    connection.ensure_connection()
    cursor: Any = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]  # the stubs lack psycopg's own
    return connection.make_debug_cursor(cursor) if connection.queries_logged else connection.make_cursor(cursor)
