"""Columns of a table, declared once, and the order of its rows, which the address has: ``?sort=-cost``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest


@dataclass(frozen=True)
class Column:
    """``order_by``: the fields of the query, or the attribute of a row, by which it sorts; empty if it does not."""

    name: str
    word: str
    order_by: str | tuple[str, ...] = ()
    is_number: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.order_by,) if isinstance(self.order_by, str) else self.order_by


@dataclass(frozen=True)
class Head:
    """The head of a column; ``sort`` is the value of the parameter that sorts by it, or empty."""

    word: str
    is_number: bool
    sort: str
    direction: str


@dataclass(frozen=True)
class Sorting:
    """The order that the address asks for; ``column`` is None if it asks for none, or for one that does not exist."""

    columns: Sequence[Column]
    column: Column | None
    is_descending: bool

    @property
    def heads(self) -> list[Head]:
        return [self._head(one) for one in self.columns]

    def query(self, rows: QuerySet[Any], *default: Any) -> QuerySet[Any]:
        """Return the rows in this order, and where that is the same, in the default one."""
        sign = "-" if self.is_descending else ""
        return rows.order_by(*(f"{sign}{name}" for name in self.column.fields) if self.column else (), *default)

    def rows(self, rows: Iterable[Any]) -> list[Any]:
        """Return the rows in this order, those without a value last; as they are if the address asks for none."""
        found = list(rows)
        if self.column is None:
            return found
        value = attrgetter(*self.column.fields)
        known = [row for row in found if value(row) is not None]
        return sorted(known, key=value, reverse=self.is_descending) + [row for row in found if value(row) is None]

    def _head(self, column: Column) -> Head:
        if column != self.column:
            descends = "-" if column.is_number else ""
            return Head(column.word, column.is_number, f"{descends}{column.name}" if column.order_by else "", "")
        direction = "descending" if self.is_descending else "ascending"
        return Head(column.word, column.is_number, f"{'' if self.is_descending else '-'}{column.name}", direction)


def sorting(request: HttpRequest, columns: Sequence[Column], default: str = "") -> Sorting:
    """Return the order of the address. One by which the table does not sort is the default."""
    for asked in (request.GET.get("sort", ""), default):
        for column in columns:
            if column.order_by and column.name == asked.removeprefix("-"):
                return Sorting(columns, column, asked.startswith("-"))
    return Sorting(columns, None, is_descending=False)
