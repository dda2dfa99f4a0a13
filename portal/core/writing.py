"""Writes rows of several tables in one statement: one round trip, and less time under the locks of a transaction."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Expression, Model

from portal.core.prepared_statements import preparing_cursor
from portal.core.reading import row_type


class WriteStatement(NamedTuple):
    """An INSERT, UPDATE or DELETE, its parameters, and the names of the columns in its RETURNING."""

    sql: str
    parameters: Sequence[Any]
    returning: tuple[str, ...]


class KeyOf(Expression):
    """The key of another row that `write_rows` inserts before in the same statement, as a value of a field."""

    def __init__(self, row: Model) -> None:
        super().__init__()
        self.row = row


def write_rows(rows: Sequence[Model], *statements: WriteStatement) -> list[list[Any]]:
    """Insert the rows, of any tables, and execute the statements, all as one; return what each statement returns: rows
    with named columns, whose values are as JSON has them.

    No part sees what another one writes, but rows may refer to each other: PostgreSQL checks that at the commit. A
    field may be the `KeyOf` a row before. Keys that PostgreSQL assigns are set in the rows. Signals are not sent.
    """
    parts = {id(row): f"part{number}" for number, row in enumerate(rows)}
    found = _execute([*(_insert(row, parts) for row in rows), *statements])
    for row, ((assigned,),) in zip(rows, found, strict=False):
        if row.pk is None:
            row.pk = assigned
        row._state.adding, row._state.db = False, connection.alias
    for row in rows:
        for name, value in vars(row).items():
            if isinstance(value, KeyOf):
                setattr(row, name, value.row.pk)
    return found[len(rows) :]


def _insert(row: Model, parts: Mapping[int, str]) -> WriteStatement:
    """Return the INSERT of a row; ``parts`` are the names of the statements that insert rows, by the rows' ids."""
    quoted, table, key = connection.ops.quote_name, row._meta.db_table, str(row._meta.pk.column)
    columns, values, parameters = [], [], []
    for field in row._meta.concrete_fields:
        value = field.pre_save(row, add=True)
        if (isinstance(value, Expression) and not isinstance(value, KeyOf)) or (field.primary_key and value is None):
            continue  # the database has a default
        columns.append(quoted(str(field.column)))
        if isinstance(value, KeyOf):
            key_of_row = quoted(str(value.row._meta.pk.column))
            values.append(f"(SELECT {key_of_row} FROM {parts[id(value.row)]})")  # noqa: S608
        else:
            values.append("%s")
            parameters.append(field.get_db_prep_save(value, connection))
    into = f"{quoted(table)} ({', '.join(columns)})"
    sql = f"INSERT INTO {into} VALUES ({', '.join(values)}) RETURNING {quoted(key)}"  # noqa: S608
    return WriteStatement(sql, parameters, (key,))


def _execute(statements: Sequence[WriteStatement]) -> list[list[Any]]:
    names = [f"part{number}" for number in range(len(statements))]
    parts = ", ".join(f"{name} AS ({each.sql})" for name, each in zip(names, statements, strict=True))
    arrays = ", ".join(
        f"(SELECT coalesce(json_agg(json_build_array({', '.join(each.returning)})), '[]') FROM {name})"  # noqa: S608
        for name, each in zip(names, statements, strict=True)
    )
    parameters = [value for each in statements for value in each.parameters]
    with preparing_cursor() as cursor:
        cursor.execute(f"WITH {parts} SELECT {arrays}", parameters)
        found = cursor.fetchone()
    return [[*map(row_type(each.returning)._make, rows)] for each, rows in zip(statements, found, strict=True)]
