"""Queries that Django compiles once in a process: what differs from call to call are the values of their parameters."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID

from portal.core.reading import Columns, Compiled, Rows, Statement, compiled

_PLACEHOLDERS: Mapping[type, Callable[[int], Hashable]] = {
    str: "placeholder {} of a query template".format,
    int: lambda number: number - 2**31,
    UUID: lambda number: UUID(int=number),
    datetime: lambda number: datetime(1, 1, number, tzinfo=UTC),
}
"""Values that no query has itself, by the type that the database gets."""


class QueryTemplate:
    """Parts of ``portal.core.reading`` with parameters.

    ``parts`` returns what to read for its arguments by name. It is called once, with placeholders of these ``types``:
    str, int, UUID, datetime, or a list of one of them for the values of an ``AnyOf``. No parameter may be None, since
    None needs another statement.
    """

    def __init__(self, parts: Callable[..., Sequence[Columns | Rows | Statement]], **types: Any) -> None:
        self._parts = parts
        self._placeholders = {
            name: _placeholder(type_, number) for number, (name, type_) in enumerate(types.items(), 1)
        }
        self._compiled: Sequence[Compiled] = ()

    def of(self, **values: Any) -> list[Compiled]:
        """Return the parts with these values.

        Raises ValueError for a value that is left out or None, and for a parameter that the parts do not use.
        """
        self._compiled = self._compiled or self._compile()
        if missing := [name for name in self._placeholders if values.get(name) is None]:
            raise ValueError(f"The query needs a value for {', '.join(missing)}.")
        given = {self._placeholders[name]: value for name, value in values.items()}
        return [
            one._replace(parameters=tuple(_given(each, given) for each in one.parameters)) for one in self._compiled
        ]

    def _compile(self) -> Sequence[Compiled]:
        found = [compiled(part) for part in self._parts(**self._placeholders)]
        parameters = [value for one in found for value in one.parameters]
        if unused := [name for name, value in self._placeholders.items() if value not in parameters]:
            raise ValueError(f"The query does not use {', '.join(unused)}.")
        return found


def _placeholder(type_: Any, number: int) -> Hashable:
    of_list = get_args(type_)
    return (_PLACEHOLDERS[of_list[0]](number),) if of_list else _PLACEHOLDERS[type_](number)


def _given(value: Any, given: Mapping[Hashable, Any]) -> Any:
    return given.get(value, value) if isinstance(value, Hashable) else value
