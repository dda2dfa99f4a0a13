"""Versions of polled page parts, so that a poll without news swaps nothing."""

from collections.abc import Iterable

from django.http import HttpResponse

from allocations.models import Allocation
from allocations.requests import selectors
from frontend.pages import PageRequest
from portal.core import clock
from portal.core.reading import digest_of


def version(rows: Iterable[Allocation], count: int = 0) -> str:
    """Return a text that changes when a row changes, joins or leaves, and each minute, since costs and times change.

    The rows are of ``selectors.listed``; ``count`` is of how many they are a page.
    """
    versions = [(row.pk, selectors.version_of(row)) for row in rows]
    return digest_of(versions, count, f"{clock.now():%H%M}")


def unchanged(request: PageRequest, current: str) -> HttpResponse | None:
    """Return 204, which htmx does not swap, if the poll already shows ``current``; else None."""
    return HttpResponse(status=204) if request.htmx and request.GET.get("v") == current else None
