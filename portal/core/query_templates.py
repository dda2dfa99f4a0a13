"""Queries that are the same but for the values of their parameters: Django compiles them once in a process.

For those of each reconcile, batch and POST, which take up to 12 ms to compile (docs/adr/0043).
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_args
from uuid import UUID

from django.db import connection
from psycopg.sql import Literal

from portal.core.reading import Columns, Compiled, Rows, Statement, compiled

_PLACEHOLDERS: Mapping[type, Callable[[int], Hashable]] = {
    str: "placeholder {} of a query template".format,
    int: lambda number: number - 2**31,
    UUID: lambda number: UUID(int=number),
    datetime: lambda number: datetime(1, 1, number, tzinfo=UTC),
}
"""Values that no query has itself, by the type that the database gets."""
_PARAMETER = re.compile("%s|%%")


class _Part(NamedTuple):
    """A compiled part, and the names of its parameters in their order."""

    part: Compiled
    names: tuple[str, ...]


class QueryTemplate:
    """Parts of ``portal.core.reading`` with parameters.

    ``parts`` returns what to read for its arguments by name. It is called once, with placeholders of these ``types``:
    str, int, UUID, datetime, or a list of one of them for the values of an ``AnyOf``. No parameter may be None, since
    None needs another statement.
    """

    def __init__(self, parts: Callable[..., Sequence[Columns | Rows | Statement]], **types: Any) -> None:
        self._parts, self._types = parts, types
        self._compiled: Sequence[_Part] = ()

    def of(self, **values: Any) -> list[Compiled]:
        """Return the parts with these values.

        Raises ValueError for a value that is left out or None, and for a parameter that the parts do not use.
        """
        self._compiled = self._compiled or self._compile()
        if missing := [name for name in self._types if values.get(name) is None]:
            raise ValueError(f"The query needs a value for {', '.join(missing)}.")
        return [part._replace(parameters=tuple(values[name] for name in names)) for part, names in self._compiled]

    def _compile(self) -> Sequence[_Part]:
        connection.ensure_connection()
        placeholders = {name: _placeholder(type_, n) for n, (name, type_) in enumerate(self._types.items(), 1)}
        name_of = {placeholder: name for name, placeholder in placeholders.items()}
        found = [self._part(compiled(part), name_of) for part in self._parts(**placeholders)]
        used = {name for _, names in found for name in names}
        if unused := [name for name in placeholders if name not in used]:
            raise ValueError(f"The query does not use {', '.join(unused)}.")
        return found

    def _part(self, part: Compiled, name_of: Mapping[Hashable, str]) -> _Part:
        """Return the part with parameters where it has placeholders, and its other values as text."""
        values, names = iter(part.parameters), []

        def text(token: re.Match[str]) -> str:
            if token.group() == "%%":
                return "%%"
            value = next(values)
            if isinstance(value, Hashable) and value in name_of:
                names.append(name_of[value])
                return "%s"
            return Literal(value).as_string(connection.connection).replace("%", "%%")

        sql = _PARAMETER.sub(text, part.sql)
        return _Part(part._replace(sql=sql), tuple(names))


def without_parameters(part: Columns | Rows | Statement) -> Compiled:
    """Return a part that is read with the same values each time; to be called once in a process."""
    (found,) = QueryTemplate(lambda: [part]).of()
    return found


def _placeholder(type_: Any, number: int) -> Hashable:
    of_list = get_args(type_)
    return (_PLACEHOLDERS[of_list[0]](number),) if of_list else _PLACEHOLDERS[type_](number)
