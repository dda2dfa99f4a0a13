"""The icon of answers that name none: the admin, JSON and text."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import path
from django.views.decorators.http import require_safe


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("frontend/favicon.svg"))


urlpatterns = [
    path("favicon.ico", favicon),
]
