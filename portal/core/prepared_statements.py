"""Prepared statements: PostgreSQL parses and plans once for each connection what is read again and again.

For a join of several tables that takes longer than to read its few rows. SQL's PREPARE and EXECUTE are used, which
convert each value to the declared type of its parameter.
"""

import hashlib
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
_prepared: WeakKeyDictionary[psycopg.Connection[Any], dict[str, float]] = WeakKeyDictionary()
"""When each statement of a connection was prepared, by name, by the monotonic clock."""


class _Statement(NamedTuple):
    name: str
    prepare: str
    execute: str


def types_of(parts: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return the types of the parameters of a statement that has these parts; None if those of one are not known."""
    found: tuple[str, ...] = ()
    for types in parts:
        if types is None:
            return None
        found += types
    return found


def execute(cursor: CursorWrapper, sql: str, parameters: Sequence[Any], types: tuple[str, ...] | None) -> None:
    """Execute a statement with ``%s`` for each parameter. If their types in PostgreSQL are given, it is prepared."""
    if types is None or not settings.PREPARED_STATEMENTS:
        cursor.execute(sql, parameters)
        return
    statement = _statement(sql, types)
    raw: psycopg.Connection[Any] = connection.connection
    prepared, now = _prepared.setdefault(raw, {}), time.monotonic()
    with connection.wrap_database_errors:
        if statement.name in prepared and prepared[statement.name] < now - PLANNED_FOR_S:
            raw.execute(f"DEALLOCATE {statement.name}".encode())
            del prepared[statement.name]
        if statement.name not in prepared:
            raw.execute(statement.prepare.encode())
            prepared[statement.name] = now
    cursor.execute(statement.execute, parameters)


@lru_cache(maxsize=1024)
def _statement(sql: str, types: tuple[str, ...]) -> _Statement:
    numbers = count(1)
    text = _PARAMETER.sub(lambda found: "%" if found.group() == "%%" else f"${next(numbers)}", sql)
    name = f"portal_{hashlib.sha256(repr((text, types)).encode()).hexdigest()[:16]}"
    declared, values = (f"({', '.join(each)})" if types else "" for each in (types, ["%s"] * len(types)))
    return _Statement(name, f"PREPARE {name} {declared} AS {text}", f"EXECUTE {name} {values}")
