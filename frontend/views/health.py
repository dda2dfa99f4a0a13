"""The checks of the running portal, each with its fix, for operators and auditors."""

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show
from portal.operations.doctor import collect


@require_safe
@page
def health(request: PageRequest) -> HttpResponse:
    """Show what `manage.py doctor` finds."""
    return show(request, "frontend/health.html", {"findings": collect.found_now(request.user)})


urlpatterns = [
    path("health", health, name="health"),
]
DOCS = "operate/doctor"
MENU = {"health": Item(ADMIN, 65, "Health")}
