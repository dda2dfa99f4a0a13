"""The places of the command palette, as JSON for its script."""

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_safe

from frontend import places
from frontend.pages import PageRequest, page

LONGEST = 100


@require_safe
@page
def palette(request: PageRequest) -> HttpResponse:
    """Return the places that the person may open and that match ``q``: pages, allocations, projects and offerings."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:LONGEST]
    found = places.places(request.user, text)
    return JsonResponse({"places": [asdict(place) for place in found.places], "is_complete": found.is_complete})


urlpatterns = [
    path("palette", palette, name="palette"),
]
