"""Counts the statements of a call, and those of a block with the rows that it reads and the tables that it writes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection
from django.test.utils import CaptureQueriesContext

AGGREGATED = "SELECT (SELECT coalesce(json_agg("
"""How the statements of ``portal.core.reading`` begin: each value is the array of a table's rows."""
WRITE = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) \"?(\w+)")


def statements(ask: Callable[[], object]) -> int:
    """Return how many statements a call takes the second time, when what is kept between requests is there."""
    ask()
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
    assert getattr(answer, "status_code", 200) < 400, "a refusal needs fewer statements"
    return len(captured)


def assert_constant(ask: Callable[[], object], grow: Callable[[], object], at_most: int) -> None:
    """Fail unless a call takes as many statements with the rows that `grow` adds as without, and at most so many.

    The bound is about a quarter above what was measured, in fives, so that only a change of kind has to raise it.
    """
    few = statements(ask)
    grow()
    many = statements(ask)
    assert many == few, f"{few} statements with few rows, {many} with many"
    assert many <= at_most, f"{many} statements, of which {at_most} are the most"


@dataclass
class Reads:
    """The number of a block's statements and of the rows that it has read, and the tables that it has written."""

    statements: int = 0
    rows: int = 0
    written: list[str] = field(default_factory=list)


@contextmanager
def counted() -> Iterator[Reads]:
    """Count the statements of the block and, by running each SELECT again at its end, the rows that they read."""
    found = Reads()
    with CaptureQueriesContext(connection) as captured:
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
