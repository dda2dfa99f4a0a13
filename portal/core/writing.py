"""Writes rows of several tables in one statement: one round trip, and less time under the locks of a transaction."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import BigIntegerField, Expression, Model
from django.db.models.sql import InsertQuery
from django.db.models.sql.compiler import SQLCompiler


class WriteStatement(NamedTuple):
    """An INSERT, UPDATE or DELETE, its parameters, and the names of the columns in its RETURNING."""

    sql: str
    parameters: Sequence[Any]
    returning: tuple[str, ...]


class KeyOf(Expression):
    """The key of another row that `write_rows` inserts before in the same statement, as a value of a field."""

    output_field = BigIntegerField()

    def __init__(self, row: Model) -> None:
        super().__init__()
        self.row = row
        self.part = ""

    def as_sql(self, compiler: SQLCompiler, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return f"(SELECT {connection.ops.quote_name(self.row._meta.pk.column)} FROM {self.part})", ()  # noqa: S608


def write_rows(rows: Sequence[Model], *statements: WriteStatement) -> list[list[list[Any]]]:
    """Insert the rows, of any tables, and execute the statements, all as one; return what each statement returns, with
    values as JSON has them.

    No part sees what another one writes, but rows may refer to each other: PostgreSQL checks that at the commit. A
    field may be the `KeyOf` a row before. Keys that PostgreSQL assigns are set in the rows. Signals are not sent.
    """
    parts = {id(row): f"part{number}" for number, row in enumerate(rows)}
    references = [(row, name, key) for row in rows for name, key in vars(row).items() if isinstance(key, KeyOf)]
    for _, _, key in references:
        key.part = parts[id(key.row)]
    found = _execute([*map(_insert, rows), *statements])
    for row, ((assigned,),) in zip(rows, found, strict=False):
        if row.pk is None:
            row.pk = assigned
        row._state.adding, row._state.db = False, connection.alias
    for row, name, key in references:
        setattr(row, name, key.row.pk)
    return found[len(rows) :]


def _insert(row: Model) -> WriteStatement:
    key, query = str(row._meta.pk.column), InsertQuery(type(row))
    fields = [each for each in row._meta.concrete_fields if not each.primary_key or row.pk is not None]
    query.insert_values(fields, [row])
    ((sql, parameters),) = query.get_compiler(connection=connection).as_sql()
    return WriteStatement(f"{sql} RETURNING {connection.ops.quote_name(key)}", parameters, (key,))


def _execute(statements: Sequence[WriteStatement]) -> list[list[list[Any]]]:
    names = [f"part{number}" for number in range(len(statements))]
    parts = ", ".join(f"{name} AS ({each.sql})" for name, each in zip(names, statements, strict=True))
    arrays = ", ".join(
        f"(SELECT coalesce(json_agg(json_build_array({', '.join(each.returning)})), '[]') FROM {name})"  # noqa: S608
        for name, each in zip(names, statements, strict=True)
    )
    parameters = [value for each in statements for value in each.parameters]
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {parts} SELECT {arrays}", parameters)
        return list(cursor.fetchone())
