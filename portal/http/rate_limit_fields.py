"""Tells clients how many requests they have left, so that they slow down before they are refused.

The fields RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and RateLimit-Policy are those of
draft-ietf-httpapi-ratelimit-headers-06, which client libraries read; later drafts put them into one field, RateLimit.
They tell of requests in a minute. What else limits a person (`portal.http.person_limits`) tells by Retry-After.
"""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from portal.http import counters

USE = "RATE_LIMIT_USE"
"""In `request.META`: how much of its limit a request found used."""


def rate_limit_fields(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Add the fields to answers whose requests were counted."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        use: counters.LimitUse | None = request.META.get(USE)
        if use is not None:
            response["RateLimit-Limit"] = str(use.limit)
            response["RateLimit-Remaining"] = str(use.remaining)
            response["RateLimit-Reset"] = str(use.reset_s)
            response["RateLimit-Policy"] = f"{use.limit};w={counters.WINDOW_S}"
        return response

    return middleware
