"""The theme: light, dark, or the system's; kept in a cookie, so that the server renders it without a flash."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    response = redirect(safe_address(request, request.POST.get("next", "")))
    theme = request.POST.get("theme", "")
    remember(request, response, "theme", theme if theme in THEMES else "auto")
    return response


def safe_address(request: HttpRequest, address: str) -> str:
    """Return the address if it is one of the portal's, else that of home."""
    is_own = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_own else "/"


def remember(request: HttpRequest, response: HttpResponse, name: str, value: str) -> None:
    """Keep what someone chose in a cookie for a year; scripts cannot read it."""
    response.set_cookie(name, value, max_age=YEAR_S, secure=request.is_secure(), httponly=True, samesite="Lax")


urlpatterns = [
    path("theme", choose, name="theme"),
]
