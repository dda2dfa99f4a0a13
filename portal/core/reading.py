"""Reads the rows of several tables in one statement: one round trip, and one moment for all of them.

Rows have their columns by name. Nothing public of Django gives the SQL of a queryset with its parameters apart, or
makes objects of rows that were read otherwise: this module uses its compiler, and no other does.
"""

import hashlib
import json
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import (
    BooleanField,
    CharField,
    DecimalField,
    Field,
    ForeignKey,
    IntegerField,
    Model,
    QuerySet,
    TextField,
)
from django.db.models.expressions import RawSQL
from django.db.models.query import get_related_populators
from django.db.models.sql.compiler import SQLCompiler

from portal.core.prepared_statements import preparing_cursor

SAME_IN_JSON = tuple(each.to_python for each in (BooleanField, CharField, Field, IntegerField, TextField))
MAX_ARGUMENTS = 90
"""PostgreSQL calls no function with more than 100 arguments."""


class Columns(NamedTuple):
    """The columns to read of a queryset's rows."""

    rows: QuerySet[Any, Any] | QuerySet[Model]
    names: tuple[str, ...]


def row_version(model: type[Model]) -> RawSQL:
    """Return the expression for a text that changes with the row: which transaction wrote it, and where."""
    table = model._meta.db_table
    return RawSQL(f'"{table}"."xmin"::text || "{table}"."ctid"::text', ())  # noqa: S611 (the name of a table)


def digest_of(*values: Any) -> str:
    """Return a digest of what was read as columns; it differs where any value does."""
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:32]


class Rows(NamedTuple):
    """A queryset whose rows are read as objects, with the relations of its ``select_related``."""

    rows: QuerySet[Any, Any] | QuerySet[Model]


class Statement(NamedTuple):
    """A statement that reads columns with these names, for what Django would compile anew for each of many lists."""

    sql: str
    parameters: tuple[Any, ...]
    names: tuple[str, ...]


class Compiled(NamedTuple):
    """The subquery of a part, and what makes of the values of a row what is returned for it."""

    sql: str
    parameters: tuple[Any, ...]
    made: Callable[[list[Any]], Any]


NO_ROWS = Compiled("'[]'::json", (), tuple)
"""A part that is left out where it can have no rows."""
Part = Columns | Rows | Statement | Compiled


class Batch:
    """Parts that are read in one statement, when the rows of one of them are first needed.

    Modules that each read something of a decision or a page share one, so that together they make one round trip.
    """

    def __init__(self) -> None:
        self._unread: list[tuple[int, Part]] = []
        self._found: dict[int, list[Any]] = {}

    def add(self, part: Part) -> Callable[[], list[Any]]:
        """Add a part to the next statement; return a function that returns its rows as ``read_tables`` does."""
        number = len(self._unread) + len(self._found)
        self._unread.append((number, part))

        def rows() -> list[Any]:
            if number not in self._found:
                numbers, parts = zip(*self._unread, strict=True)
                self._unread = []
                self._found.update(zip(numbers, read_tables(*parts), strict=True))
            return self._found[number]

        return rows


@cache
def row_type(names: tuple[str, ...]) -> Any:
    """Return the class of rows with these columns."""
    return namedtuple("Row", names)


def read_rows(sql: str, parameters: Any = None) -> list[Any]:
    """Return the rows of a statement, whose columns all have names, with values as psycopg has them; one query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row = row_type(tuple(column.name for column in cursor.description))
        return [*map(row._make, cursor.fetchall())]


def read_tables(*parts: Part) -> list[list[Any]]:
    """Return the rows of each part: of ``Rows`` as objects; of the others with named columns, whose values are as JSON
    has them, where a UUID or a time is text.
    """
    subqueries = [part if isinstance(part, Compiled) else compiled(part) for part in parts]
    sql = f"SELECT {', '.join(one.sql for one in subqueries)}"
    parameters = [value for one in subqueries for value in one.parameters]
    with preparing_cursor() as cursor:
        cursor.execute(sql, parameters)
        found: Sequence[list[list[Any]]] = cursor.fetchone()
    return [[*map(one.made, rows)] for one, rows in zip(subqueries, found, strict=True)]


def compiled(part: Columns | Rows | Statement) -> Compiled:
    """Return a part with its subquery; whoever reads the same in every request keeps it, since Django takes longer to
    compile a statement than to read few rows.
    """
    if isinstance(part, Statement):
        return Compiled(_array_of_rows(part.sql, [""] * len(part.names)), part.parameters, row_type(part.names)._make)
    rows = part.rows if isinstance(part, Rows) else part.rows.values_list(*part.names)
    compiler: SQLCompiler = rows.query.get_compiler(connection=connection)
    if not isinstance(part, Rows):
        return Compiled(*_aggregated(compiler), row_type(part.names)._make)
    make = cache(partial(_maker, compiler))  # called when there is a row
    return Compiled(*_aggregated(compiler), lambda row: make()(row))


def _array_of_rows(sql: str, casts: Sequence[str]) -> str:
    """Return the subquery whose value is the JSON array of all rows of a statement, each column with its cast."""
    names = [f"c{number}" for number in range(len(casts))]
    values = [f"{name}{cast}" for name, cast in zip(names, casts, strict=True)]
    rows = f"({sql}) AS part ({', '.join(names)})"
    return f"(SELECT coalesce(json_agg({_array(values)}), '[]') FROM {rows})"  # noqa: S608


def _aggregated(compiler: SQLCompiler) -> tuple[str, tuple[Any, ...]]:
    """Return a subquery whose value is the JSON array of all rows, and its parameters."""
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return NO_ROWS.sql, ()
    # A Decimal is read as text, since JSON's numbers become floats.
    casts = ["::text" if isinstance(each.output_field, DecimalField) else "" for each, *_ in compiler.select]
    return _array_of_rows(sql, casts), parameters


def _array(values: Sequence[str]) -> str:
    """Return the JSON array of a row's values; a long one as an array of arrays."""
    if len(values) <= MAX_ARGUMENTS:
        return f"json_build_array({', '.join(values)})"
    return _array([_array(values[start : start + MAX_ARGUMENTS]) for start in range(0, len(values), MAX_ARGUMENTS)])


def _maker(compiler: SQLCompiler) -> Callable[[list[Any]], Any]:
    """Return what makes the object of a row, as Django makes it of its own rows."""
    select, klass_info = compiler.select, compiler.klass_info
    assert klass_info is not None
    convert = [(n, each.output_field.to_python) for n, (each, *_) in enumerate(select) if not _is_json(each)]
    start, end = klass_info["select_fields"][0], klass_info["select_fields"][-1] + 1
    names = [each.target.attname for each, *_ in select[start:end]]
    relations = get_related_populators(klass_info, select, connection.alias)  # type: ignore[call-arg]  # stubs: Django 6
    model, is_chunked = klass_info["model"], len(select) > MAX_ARGUMENTS

    def make(row: list[Any]) -> Any:
        values = [value for chunk in row for value in chunk] if is_chunked else row
        for n, to_python in convert:
            if values[n] is not None:  # of a relation that a row does not have, all columns are None
                values[n] = to_python(values[n])
        made = model.from_db(connection.alias, names, values[start:end])
        for relation in relations:
            relation.populate(values, made)
        return made

    return make


def _is_json(column: Any) -> bool:
    """Return whether the values of a column are the same in JSON as in an object."""
    field = column.output_field
    while isinstance(field, ForeignKey):
        field = field.target_field
    return type(field).to_python in SAME_IN_JSON


def relate(rows: Collection[Any], **related: Iterable[Model]) -> None:
    """Give each row, by field, those of the related rows that it refers to: what many rows share is read once, and not
    with each of them. Raises KeyError for one that is not there.
    """
    for field, others in related.items():
        by_pk = {one.pk: one for one in others}
        for row in rows:
            setattr(row, field, by_pk[getattr(row, f"{field}_id")])
