"""Reads the rows of several tables in one statement: one round trip, and one moment for all of them."""

from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, QuerySet


class Columns(NamedTuple):
    """The columns to read of a queryset's rows."""

    rows: QuerySet[Any, Any] | QuerySet[Model]
    names: tuple[str, ...]


def read_tables(*parts: Columns) -> list[list[list[Any]]]:
    """Return for each part its rows as lists of values, as JSON has them: a UUID or a time is text."""
    statements, parameters = zip(*map(_aggregated, parts), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(statements)}", [value for each in parameters for value in each])
        return list(cursor.fetchone())


def _aggregated(part: Columns) -> tuple[str, tuple[Any, ...]]:
    """Return a subquery whose value is the JSON array of all rows, and its parameters."""
    try:
        sql, parameters = part.rows.values_list(*part.names).query.sql_with_params()
    except EmptyResultSet:
        return "'[]'::json", ()
    names = ", ".join(f"c{number}" for number in range(len(part.names)))
    rows = f"({sql}) AS part ({names})"
    return f"(SELECT coalesce(json_agg(json_build_array({names})), '[]') FROM {rows})", parameters  # noqa: S608
