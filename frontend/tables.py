"""Columns of a table, declared once, and the order of its rows, which the address has: ``?sort=-cost``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db.models import F, QuerySet
from django.http import HttpRequest, QueryDict


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
    """The head of a column. ``sort`` is the value that sorts by it, ``url`` the address; ``direction`` is a value of
    ``aria-sort``. Empty where it does not sort.
    """

    word: str
    is_number: bool
    sort: str
    url: str
    direction: str


@dataclass(frozen=True)
class Sorting:
    """The order that the address asks for; ``column`` is None if it asks for none, or for one that does not exist.

    ``query_dict`` are the parameters of the address; ``parameter`` is that of the order.
    """

    columns: Sequence[Column]
    column: Column | None
    is_descending: bool
    query_dict: QueryDict
    parameter: str

    @property
    def heads(self) -> list[Head]:
        return [self._head(one) for one in self.columns]

    def query(self, rows: QuerySet[Any], *default: Any) -> QuerySet[Any]:
        """Return the rows in this order, those without a value last, and where it is the same, in the default order."""
        fields = [F(name) for name in self.column.fields] if self.column else []
        sorts = [each.desc(nulls_last=True) if self.is_descending else each.asc(nulls_last=True) for each in fields]
        return rows.order_by(*sorts, *default)

    def rows(self, rows: Iterable[Any]) -> list[Any]:
        """Return the rows in this order, those without a value last; as they are if the address asks for none."""
        found = list(rows)
        if self.column is None:
            return found
        value = attrgetter(*self.column.fields)
        known = [row for row in found if value(row) is not None]
        return sorted(known, key=value, reverse=self.is_descending) + [row for row in found if value(row) is None]

    def _head(self, column: Column) -> Head:
        is_current = column == self.column
        descends = not self.is_descending if is_current else column.is_number
        direction = ("descending" if self.is_descending else "ascending") if is_current else ""
        sort = f"{'-' if descends else ''}{column.name}" if column.order_by else ""
        return Head(column.word, column.is_number, sort, self._url(sort) if sort else "", direction)

    def _url(self, sort: str) -> str:
        """Return the address of the first page in an order, with the other parameters as they are."""
        query = self.query_dict.copy()
        query[self.parameter] = sort
        for name in ("page", "v"):
            query.pop(name, None)
        return f"?{query.urlencode()}"


def sorting(request: HttpRequest, columns: Sequence[Column], default: str = "", *, parameter: str = "sort") -> Sorting:
    """Return the order of the address, of the parameter ``parameter`` where a page has several tables. One by which the
    table does not sort is the default.
    """
    for asked in (request.GET.get(parameter, ""), default):
        for column in columns:
            if column.order_by and column.name == asked.removeprefix("-"):
                return Sorting(columns, column, asked.startswith("-"), request.GET, parameter)
    return Sorting(columns, None, False, request.GET, parameter)
