"""The keyboard shortcuts: which there are, and whether keys of one letter work; kept in a cookie, as the theme is."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods

from frontend.navigation import SHORTCUTS_COOKIE
from frontend.pages import PageRequest, page, show
from frontend.views.theme import remember, safe_address


@require_http_methods(["GET", "HEAD", "POST"])
@page
def shortcuts(request: PageRequest) -> HttpResponse:
    """Show the shortcuts, in a dialog or on a page; a POST turns those of one letter on or off."""
    if request.method == "POST":
        response = redirect(safe_address(request, request.POST.get("next", "")))
        remember(request, response, SHORTCUTS_COOKIE, "off" if request.POST.get("keys") == "off" else "on")
        return response
    here = request.htmx.current_url_abs_path if request.htmx else request.path
    return show(request, "frontend/shortcuts.html", {"next": here or "/"}, partial="question")


urlpatterns = [
    path("shortcuts", shortcuts, name="shortcuts"),
]
DOCS = "how-to/keyboard"
