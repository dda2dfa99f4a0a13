"""A cheap mark of what a live part shows, so that a poll that finds nothing new costs one query and swaps nothing."""

from django.db.models import Count, Max, QuerySet
from django.http import HttpResponse

from allocations.models import Allocation
from frontend.pages import PageRequest
from portal.core import clock


def version(rows: QuerySet[Allocation]) -> str:
    """Another text once a row changes phase or reason, joins or leaves, and each minute, as costs and times run."""
    found = rows.order_by().aggregate(last=Max("transitions"), rows=Count("pk", distinct=True))
    return f"{found['last'] or 0}-{found['rows']}-{clock.now():%H%M}"


def unchanged(request: PageRequest, current: str) -> HttpResponse | None:
    """204, which htmx does not swap, where a poll already shows ``current``."""
    return HttpResponse(status=204) if request.htmx and request.GET.get("v") == current else None
