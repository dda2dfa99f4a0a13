"""Counts the statements of a call, and those of a block with the rows that it reads and the tables that it writes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

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
def executed() -> Iterator[list[tuple[str, Any]]]:
    """Yield the list of the block's statements with their parameters, as they are before psycopg has them: Django does
    not know the text of one that is prepared.
    """
    found: list[tuple[str, Any]] = []

    def execute(run: Callable[..., Any], sql: str, parameters: Any, *rest: Any) -> Any:
        found.append((sql, parameters))
        return run(sql, parameters, *rest)

    with connection.execute_wrapper(execute):
        yield found


@contextmanager
def counted() -> Iterator[Reads]:
    """Count the statements of the block and, by running each SELECT again at its end, the rows that they read."""
    found = Reads()
    with executed() as statements:
        yield found
    found.statements = len(statements)
    found.written = [table for sql, _ in statements for table in WRITE.findall(sql)]
    found.rows = sum(_rows(*one) for one in statements if one[0].startswith("SELECT") and "pg_" not in one[0])


def _rows(sql: str, parameters: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows = cursor.fetchall()
    if sql.startswith(AGGREGATED):
        return sum(len(table) for table in rows[0])
    return len(rows)
