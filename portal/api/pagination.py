"""Lists by cursor: `{"next", "previous", "results"}`, stable while rows are added."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import Model, QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer, Serializer, URLField

from portal.core.errors import Invalid

Row = TypeVar("Row", bound=Model)
HAND_MADE = {"cursor": ["Follow next and previous; a cursor is not made by hand."]}


class Page(CursorPagination):
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int:
        raw = request.query_params.get("limit", str(self.page_size))
        if not raw.isdecimal() or int(raw) < 1:
            raise Invalid({"limit": [f"Use a whole number from 1 to {self.max_page_size}."]})
        return min(int(raw), self.max_page_size)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """As DRF does, but what it takes for the first page without saying so is an error."""
        given = self.cursor_query_param in request.query_params
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            cursor = None
        if given and (cursor is None or cursor == Cursor(offset=0, reverse=False, position=None)):
            raise Invalid(HAND_MADE)
        return cursor


def page_of(row: type[Serializer]) -> Serializer:
    """The schema of a page of `row`."""
    name = row.__name__.removesuffix("Out")
    url = URLField(allow_null=True)
    return inline_serializer(f"{name}Page", {"next": url, "previous": url, "results": row(many=True)})


def page(
    request: Request, rows: QuerySet[Row], render: Callable[[list[Row]], list[dict[str, Any]]], *ordering: str
) -> Response:
    """One page of `rows` in `ordering` (which must tell rows apart), rendered all at once."""
    paginator = Page()
    paginator.ordering = ordering
    try:
        found = paginator.paginate_queryset(rows, request) or []
    except (ValueError, ValidationError, DataError) as error:  # a position that is no value of the ordering
        raise Invalid(HAND_MADE) from error
    return paginator.get_paginated_response(render(found))


def page_as(request: Request, rows: QuerySet[Any], out: type[ModelSerializer], *ordering: str) -> Response:
    """One page of `rows`, each as the serializer shows it."""
    return page(request, rows, lambda found: [dict(row) for row in out(found, many=True).data], *ordering)
