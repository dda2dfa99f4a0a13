"""Reads the rows of several tables in one statement: one round trip, and one moment for all of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import DecimalField, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql.compiler import SQLCompiler

MAX_ARGUMENTS = 90
"""PostgreSQL calls no function with more than 100 arguments."""


class Columns(NamedTuple):
    """The columns to read of a queryset's rows."""

    rows: QuerySet[Any, Any] | QuerySet[Model]
    names: tuple[str, ...]


class Rows(NamedTuple):
    """A queryset whose rows are read as objects, with the relations of its ``select_related``."""

    rows: QuerySet[Any, Any] | QuerySet[Model]


def read_tables(*parts: Columns | Rows) -> list[list[Any]]:
    """Return the rows of each part: of ``Rows`` as objects; of ``Columns`` as lists of values as JSON has them, where a
    UUID or a time is text.
    """
    compilers = [_compiler(part) for part in parts]
    statements, parameters = zip(*map(_aggregated, compilers), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(statements)}", [value for each in parameters for value in each])
        found: Sequence[list[list[Any]]] = cursor.fetchone()
    return [
        _objects(compiler, rows) if isinstance(part, Rows) else rows
        for part, compiler, rows in zip(parts, compilers, found, strict=True)
    ]


def _compiler(part: Columns | Rows) -> SQLCompiler:
    rows = part.rows if isinstance(part, Rows) else part.rows.values_list(*part.names)
    compiler: SQLCompiler = rows.query.get_compiler(connection=connection)
    return compiler


def _aggregated(compiler: SQLCompiler) -> tuple[str, tuple[Any, ...]]:
    """Return a subquery whose value is the JSON array of all rows, and its parameters."""
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return "'[]'::json", ()
    names = [f"c{number}" for number in range(len(compiler.select))]
    # A Decimal is read as text, since JSON's numbers become floats.
    casts = ["::text" if isinstance(each.output_field, DecimalField) else "" for each, *_ in compiler.select]
    values = [f"{name}{cast}" for name, cast in zip(names, casts, strict=True)]
    rows = f"({sql}) AS part ({', '.join(names)})"
    return f"(SELECT coalesce(json_agg({_array(values)}), '[]') FROM {rows})", parameters  # noqa: S608


def _array(values: Sequence[str]) -> str:
    """Return the JSON array of a row's values; a long one as an array of arrays."""
    if len(values) <= MAX_ARGUMENTS:
        return f"json_build_array({', '.join(values)})"
    return _array([_array(values[start : start + MAX_ARGUMENTS]) for start in range(0, len(values), MAX_ARGUMENTS)])


def _objects(compiler: SQLCompiler, rows: list[list[Any]]) -> list[Any]:
    """Return the objects of rows as ``_aggregated`` reads them, built as Django builds them from its own rows."""
    if not rows:
        return []
    select, klass_info = compiler.select, compiler.klass_info
    assert klass_info is not None
    if len(select) > MAX_ARGUMENTS:
        rows = [[value for chunk in row for value in chunk] for row in rows]
    convert = [each.output_field.to_python for each, *_ in select]
    start, end = klass_info["select_fields"][0], klass_info["select_fields"][-1] + 1
    names = [each.target.attname for each, *_ in select[start:end]]
    relations = get_related_populators(klass_info, select, connection.alias)  # type: ignore[call-arg]  # stubs: Django 6
    objects = []
    for row in rows:
        values = [to_python(value) for to_python, value in zip(convert, row, strict=True)]
        made = klass_info["model"].from_db(connection.alias, names, values[start:end])
        for relation in relations:
            relation.populate(values, made)
        objects.append(made)
    return objects
