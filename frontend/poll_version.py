"""Versions of polled page parts, so that a poll without news costs one query and swaps nothing."""

from django.db.models import Count, Max, QuerySet
from django.http import HttpResponse

from allocations.models import Allocation
from frontend.pages import PageRequest
from portal.core import clock


def version(rows: QuerySet[Allocation]) -> str:
    """Return a text that changes when a row changes phase or reason, joins or leaves, and each minute, since costs and
    times change.
    """
    found = rows.order_by().aggregate(last=Max("transitions"), rows=Count("pk", distinct=True))
    return f"{found['last'] or 0}-{found['rows']}-{clock.now():%H%M}"


def unchanged(request: PageRequest, current: str) -> HttpResponse | None:
    """Return 204, which htmx does not swap, if the poll already shows ``current``; else None."""
    return HttpResponse(status=204) if request.htmx and request.GET.get("v") == current else None
