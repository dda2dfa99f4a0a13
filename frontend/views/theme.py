"""The theme: light, dark, or the system's; kept in a cookie, so that the server renders it without a flash."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = "/"
    response = redirect(back)
    theme = request.POST.get("theme", "")
    response.set_cookie(
        "theme",
        theme if theme in THEMES else "auto",
        max_age=YEAR_S,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return response
