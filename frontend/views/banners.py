"""The banners of all pages, which poll them."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_safe

from frontend import banners
from frontend.pages import PageRequest, page


@require_safe
@page
def show(request: PageRequest) -> HttpResponse:
    """Show the banners, or nothing if the page shows them already."""
    if not request.htmx:
        return redirect("home")
    current = banners.current()
    if request.GET.get("v") == current.version:
        return HttpResponse(status=204)
    return render(request, "frontend/banners.html", {"banners": current})


urlpatterns = [
    path("banners", show, name="banners"),
]
