"""Pages of rows that are computed for each request: `{"next", "previous", "results"}`, all as of one moment.

A cursor holds the moment of the first page, and how many rows come before its own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rest_framework.request import Request

from portal.api.http.pagination import INVALID_CURSOR, Cursor, address_of, cursor_of
from portal.api.http.strict import query_whole
from portal.core import clock, rfc3339
from portal.core.errors import Invalid

PAGE_SIZE = MAX_PAGE_SIZE = 1000


class Place(NamedTuple):
    """Where a page begins: after so many rows, as of a moment."""

    now: datetime
    before: int = 0


def place_of(request: Request) -> Place:
    """Return where the page of the request begins. Raises Invalid for a cursor that no answer has had."""
    now = clock.now()
    if "cursor" not in request.query_params:
        return Place(now)
    position = cursor_of(request, len(Place._fields)).position
    try:
        place = Place(rfc3339.time(position[0]), int(position[1]))
    except (IndexError, ValueError) as error:
        raise Invalid(INVALID_CURSOR) from error
    if place.now > now or place.before < 0:
        raise Invalid(INVALID_CURSOR)
    return place


def page_of(request: Request, rows: Sequence[Any], place: Place) -> dict[str, Any]:
    """Return the page: its rows as ``results``, and the addresses of those beside it."""
    size = query_whole(request, "limit", PAGE_SIZE, MAX_PAGE_SIZE)
    after, before = place.before + size, max(0, place.before - size)
    return {
        "next": _address(request, place.now, after) if after < len(rows) else None,
        "previous": _address(request, place.now, before) if place.before else None,
        "results": rows[place.before : after],
    }


def _address(request: Request, now: datetime, before: int) -> str:
    return address_of(request, Cursor((now.isoformat(), str(before))))
