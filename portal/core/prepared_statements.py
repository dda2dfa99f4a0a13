"""Prepared statements: PostgreSQL parses and plans once for each connection what is read again and again.

For a join of several tables that takes longer than to read its few rows. SQL's PREPARE and EXECUTE are used, which
convert each value to the declared type of its parameter.
"""

import re
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

_PARAMETER = re.compile("%s|%%")
PLANNED_FOR_S = 60
"""A plan of a small table is none for a large one, and PostgreSQL plans anew only after an ANALYZE."""
_numbers = count(1)


class _Prepared(NamedTuple):
    """The name of a prepared statement, and when it was prepared, by the monotonic clock."""

    name: str
    at: float


_prepared: WeakKeyDictionary[psycopg.Connection[Any], dict[tuple[str, tuple[str, ...]], _Prepared]] = (
    WeakKeyDictionary()
)
"""The statements of each connection, by their text and the types of their parameters."""


def types_of(parts: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return the types of the parameters of a statement that has these parts; None if those of one are not known."""
    found: tuple[str, ...] = ()
    for types in parts:
        if types is None:
            return None
        found += types
    return found


def execute(cursor: CursorWrapper, sql: str, parameters: Sequence[Any], types: tuple[str, ...] | None) -> None:
    """Execute a statement with ``%s`` for each parameter.

    If their types in PostgreSQL are given, it is prepared, in one round trip with its first execution; one that fails
    is prepared anew the next time.
    """
    if types is None or not settings.PREPARED_STATEMENTS:
        cursor.execute(sql, parameters)
        return
    of_connection = _prepared.setdefault(connection.connection, {})
    known, now = of_connection.pop((sql, types), None), time.monotonic()
    steps = []
    if known is None or known.at < now - PLANNED_FOR_S:
        if known is not None:
            steps.append(f"DEALLOCATE {known.name}")
        # A new name: whether one exists that was prepared by a statement that failed is not known.
        known = _Prepared(f"portal_{next(_numbers)}", now)
        steps.append(f"PREPARE {known.name} {_in_parentheses(types)} AS {_numbered(sql)}")
    steps.append(f"EXECUTE {known.name} {_in_parentheses(['%s'] * len(types))}")
    cursor.execute("; ".join(steps), parameters)
    for _ in steps[1:]:
        cursor.nextset()
    of_connection[sql, types] = known


def _in_parentheses(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})" if parts else ""


@lru_cache(maxsize=1024)
def _numbered(sql: str) -> str:
    """Return the statement with numbers for its parameters."""
    numbers = count(1)
    return _PARAMETER.sub(lambda found: "%%" if found.group() == "%%" else f"${next(numbers)}", sql)
