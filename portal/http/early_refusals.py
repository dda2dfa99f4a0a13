"""Refuses clients that repeat what was just refused, before their requests cost anything.

A limit refuses after look-ups of token or session and of counters, and a page says so in HTML. A client that does not
wait as long as Retry-After says would keep a processor busy with refusals. So each process remembers who has to wait,
and until when; after `PATIENCE` refusals further ones are made of these alone.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from portal.core.errors import TooManyRequests
from portal.http import client_address, middleware

PATIENCE = 5
REMEMBERED = 10_000
"""Clients; beyond them the one refused first is forgotten, and refused by the limit itself."""


class Key(NamedTuple):
    """A client (a digest of its credentials, or its network) and what it was refused: all of REST, or one page."""

    client: str
    what: str


@dataclass
class Told:
    """Until when a client has to wait, in seconds since the epoch, and how often it was told so."""

    until: float
    times: int = 0


_told: dict[Key, Told] = {}
_lock = Lock()


def remember(request: HttpRequest, wait_s: int) -> None:
    """Note that requests like this one are refused for `wait_s` seconds from now on."""
    key, now = _key(request), time.time()
    with _lock:
        told = _told.get(key)
        if told is None or told.until <= now:
            _told.pop(key, None)
            told = _told[key] = Told(now + wait_s)
            if len(_told) > REMEMBERED:
                del _told[next(iter(_told))]
        told.times += 1


def refuse_early(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answer a request with 429 if its like was refused `PATIENCE` times and the client still has to wait."""

    def middleware(request: HttpRequest) -> HttpResponse:
        wait_s = _wait_s(_key(request)) if _told else 0
        return _refusal(request, wait_s) if wait_s else get_response(request)

    return middleware


def _wait_s(key: Key) -> int:
    with _lock:
        told = _told.get(key)
    return max(0, math.ceil(told.until - time.time())) if told is not None and told.times >= PATIENCE else 0


def _key(request: HttpRequest) -> Key:
    """Return the key of a request. Passwords are refused by network, since they come with no credentials yet."""
    if request.path == reverse("login") and request.method == "POST":
        return Key(_network(request), f"POST {request.path}")
    credentials = f"{request.headers.get('Authorization', '')} {request.COOKIES.get(settings.SESSION_COOKIE_NAME, '')}"
    client = sha256(credentials.encode()).hexdigest() if credentials.strip() else _network(request)
    return Key(client, "/api/" if _is_rest(request) else f"{request.method} {request.path}")


def _network(request: HttpRequest) -> str:
    return client_address.network(middleware.address(request))


def _is_rest(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _refusal(request: HttpRequest, wait_s: int) -> HttpResponse:
    problem = TooManyRequests("You were told to wait, and sent more requests.", wait_s)
    headers = {"Retry-After": str(wait_s)}
    if _is_rest(request):
        body = problem.document()
        return JsonResponse(body, status=problem.status, headers=headers, content_type="application/problem+json")
    text = f"{problem.title}. {problem.hint}\n"
    return HttpResponse(text, status=problem.status, headers=headers, content_type="text/plain; charset=utf-8")
