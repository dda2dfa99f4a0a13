"""Remembers for a moment who wrote, in all web processes: what one has just changed, one must see."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from portal.http import counters
from portal.http.person_limits import MARK, PERSON

GetResponse = Callable[[HttpRequest], HttpResponseBase]
SAFE = ("GET", "HEAD", "OPTIONS")


def note_own_writes(get_response: GetResponse) -> GetResponse:
    """Have `limit_client` note who wrote, with their processor time, before they have the answer."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        person = request.META.get(PERSON)
        if person is not None and request.method not in SAFE:
            request.META[MARK] = counters.Mark(_name(person), 1 + int(settings.FLEET_MAX_AGE_S))
        return response

    return middleware


def fleet_max_age_s(person: int) -> float:
    """Return how old what is available may be for the person: 0 after a write of their own, and without Redis."""
    try:
        return 0.0 if counters.is_marked(_name(person)) else settings.FLEET_MAX_AGE_S
    except counters.Unavailable:
        return 0.0


def _name(person: int) -> str:
    return f"wrote:{person}"
