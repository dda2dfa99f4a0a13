"""Cursor pagination: `{"next", "previous", "results"}`, stable while rows are added.

A cursor holds a row's values of the complete ordering, and the name of the ordering if one was asked for. A page starts
after that position, or ends before it, so an ordering may follow relations, and many rows may share its first value.
"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlencode

from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import Model, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer, Serializer, URLField
from rest_framework.utils.urls import remove_query_param, replace_query_param

from portal.api.http.strict import query_whole
from portal.core.errors import Invalid

Row = TypeVar("Row", bound=Model)
PAGE_SIZE, MAX_PAGE_SIZE = 50, 200
INVALID_CURSOR = {"cursor": ["Follow next and previous; a cursor is not made by hand."]}


class Cursor(NamedTuple):
    """The page after ``position``, or before it. Without a position: the first page, or the last one."""

    position: tuple[str, ...] = ()
    is_before: bool = False


Orderings = Mapping[str, tuple[str, ...]]
"""The complete orderings that a list has, by their names, all ascending."""
FIRST, LAST = Cursor(), Cursor(is_before=True)


class Page(Serializer):
    """The schema of a page. `page_schema` adds the results."""

    next = URLField(allow_null=True)
    previous = URLField(allow_null=True)


def page_schema(row: type[Serializer], *beside: type[Serializer], name: str = "") -> Page:
    """Return the schema of a page of `row`, with the members of others beside its rows."""
    name = name or f"{row.__name__.removesuffix('Out')}Page"
    found: type[Page] = type(name, (Page, *beside), {"results": row(many=True)})
    return found()


def ordering_parameter(orderings: Orderings, default: str) -> OpenApiParameter:
    """Return the declaration of the query parameter `ordering`."""
    names = [name for each in orderings for name in (each, f"-{each}")]
    return OpenApiParameter("ordering", OpenApiTypes.STR, enum=names, default=default, description="- for descending.")


def ordering(request: Request, orderings: Orderings, default: str) -> tuple[str, ...]:
    """Return the ordering that the request names; raise Invalid for one that the list does not have."""
    name = request.query_params.get("ordering", default)
    columns = orderings.get(name.removeprefix("-"))
    if columns is None:
        names = ", ".join(orderings)
        raise Invalid({"ordering": [f"Use one of {names}, with a minus sign before it for descending."]})
    return tuple(f"-{column}" for column in columns) if name.startswith("-") else columns


def page(
    request: Request, rows: QuerySet[Row], render: Callable[[list[Row]], list[dict[str, Any]]], *ordering: str
) -> Response:
    """Return one page of `rows`, rendered together. `ordering` must be unique and have no nulls."""
    found = read_page(request, rows, *ordering)
    return found.response(render(found.rows))


class RowsOfPage(NamedTuple, Generic[Row]):
    """The rows of a page, and the addresses of the pages beside it."""

    rows: list[Row]
    next: str | None
    previous: str | None

    def response(self, results: list[dict[str, Any]]) -> Response:
        return Response({"next": self.next, "previous": self.previous, "results": results})


def read_page(request: Request, rows: QuerySet[Row], *ordering: str) -> RowsOfPage[Row]:
    """Return the rows of one page. `ordering` must be unique and have no nulls."""
    size, cursor = _size(request), cursor_of(request, len(ordering))
    try:
        found = list(_from(rows, ordering, cursor)[: size + 1])
    except (ValueError, OverflowError, ValidationError, DataError) as error:  # a position that is no value
        raise Invalid(INVALID_CURSOR) from error
    return _rows_of_page(request, found, size, cursor, ordering)


def first_page(request: Request, rows: Sequence[Row], *ordering: str) -> RowsOfPage[Row] | None:
    """Return what `read_page` returns for rows that were read already, in their order; None if the request names a
    cursor.
    """
    if cursor_of(request, len(ordering)) != FIRST:
        return None
    return _rows_of_page(request, rows, _size(request), FIRST, ordering)


def _rows_of_page(
    request: Request, found: Sequence[Row], size: int, cursor: Cursor, ordering: Sequence[str]
) -> RowsOfPage[Row]:
    """Return the page of the rows from the cursor on; more than ``size`` of them tell that there is another page."""
    shown, has_more = list(found[:size]), len(found) > size
    if cursor.is_before:
        shown.reverse()
    has_next, has_previous = (True, has_more) if cursor.is_before else (has_more, cursor != FIRST)
    after = Cursor(_position(shown[-1], ordering)) if shown else FIRST
    before = Cursor(_position(shown[0], ordering), is_before=True) if shown else LAST
    return RowsOfPage(
        rows=shown,
        next=address_of(request, after) if has_next else None,
        previous=address_of(request, before) if has_previous else None,
    )


def serialized_page(request: Request, rows: QuerySet[Any], out: type[ModelSerializer], *ordering: str) -> Response:
    """Return one page of `rows`, each rendered by the serializer."""
    return page(request, rows, lambda found: [dict(row) for row in out(found, many=True).data], *ordering)


def _size(request: Request) -> int:
    return query_whole(request, "limit", PAGE_SIZE, MAX_PAGE_SIZE)


def cursor_of(request: Request, length: int) -> Cursor:
    """Return the cursor of the request; raise Invalid unless `address_of` could have written it."""
    encoded = request.query_params.get("cursor")
    if encoded is None:
        return FIRST
    try:
        values = parse_qs(b64decode(encoded, b"-_", validate=True).decode("ascii"), keep_blank_values=True)
    except ValueError as error:
        raise Invalid(INVALID_CURSOR) from error
    cursor = Cursor(tuple(values.get("p", ())), "r" in values)
    is_of_ordering = values.get("o", [""])[0] == request.query_params.get("ordering", "")
    if cursor == FIRST or len(cursor.position) not in (0, length) or not is_of_ordering:
        raise Invalid(INVALID_CURSOR)
    return cursor


def address_of(request: Request, cursor: Cursor) -> str:
    """Return the URL of the request for the page of `cursor`."""
    here = request.build_absolute_uri()
    if cursor == FIRST:
        return str(remove_query_param(here, "cursor"))
    ordering = request.query_params.get("ordering")
    words = urlencode(
        [
            *(("p", value) for value in cursor.position),
            *([("r", "1")] if cursor.is_before else []),
            *([("o", ordering)] if ordering else []),
        ]
    )
    return str(replace_query_param(here, "cursor", urlsafe_b64encode(words.encode()).decode()))


def _from(rows: QuerySet[Row], ordering: Sequence[str], cursor: Cursor) -> QuerySet[Row]:
    """Return the rows on that side of the position, nearest first."""
    names = [name.removeprefix("-") for name in ordering]
    descends = [name.startswith("-") != cursor.is_before for name in ordering]
    beyond = Q()
    for name, down, value in reversed(list(zip(names, descends, cursor.position, strict=False))):
        further = Q((f"{name}__{'lt' if down else 'gt'}", value))
        # as `a < x or (a = x and ...)`, in a form of which an index is of use
        beyond = Q((f"{name}__{'lte' if down else 'gte'}", value)) & (further | beyond) if beyond else further
    return rows.filter(beyond).order_by(*(f"{'-' * down}{name}" for name, down in zip(names, descends, strict=True)))


def _position(row: Model, ordering: Sequence[str]) -> tuple[str, ...]:
    """Return the row's values of the ordering."""
    return tuple(str(reduce(getattr, name.removeprefix("-").split("__"), row)) for name in ordering)
