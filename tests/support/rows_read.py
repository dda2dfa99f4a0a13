"""Counts the statements of a block, the rows that it reads, and the tables that it writes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings

AGGREGATED = "SELECT (SELECT coalesce(json_agg("
"""How the statements of ``portal.core.reading`` begin: each value is the array of a table's rows."""
WRITE = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) \"?(\w+)")


@dataclass
class Reads:
    """The number of a block's statements and of the rows that it has read, and the tables that it has written."""

    statements: int = 0
    rows: int = 0
    written: list[str] = field(default_factory=list)


@contextmanager
def counted() -> Iterator[Reads]:
    """Count the statements of the block and, by running each SELECT again at its end, the rows that they read.

    Statements are sent whole, since one that is prepared does not say what it reads.
    """
    found = Reads()
    with override_settings(PREPARED_STATEMENTS=False), CaptureQueriesContext(connection) as captured:
        yield found
    statements = [query["sql"] for query in captured.captured_queries]
    found.statements = len(statements)
    found.written = [table for sql in statements for table in WRITE.findall(sql)]
    found.rows = sum(_rows(sql) for sql in statements if sql.startswith("SELECT") and "pg_" not in sql)


def _rows(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = cursor.fetchall()
    if sql.startswith(AGGREGATED):
        return sum(len(table) for table in rows[0])
    return len(rows)
