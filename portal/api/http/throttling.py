"""Limits the requests of REST.

A release is limited only if it releases nothing, which its view finds out (`releases`): as many releases have an effect
as allocations were requested, and those are limited. What is not released is charged.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.conf import settings
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from portal.api.http.auth import current_user
from portal.core.errors import TooLarge, TooManyRequests
from portal.http import address_limits, counters, early_refusals, person_limits, rate_limit_fields

if TYPE_CHECKING:
    from rest_framework.views import APIView  # DRF imports this module while it loads its views

P = ParamSpec("P")
View = Callable[Concatenate[Request, P], Response]
MAX_RELEASE = 8192
"""Bytes of the body of a release, which is read before anything is counted: a hundred ids, or filters."""


class PersonThrottle(BaseThrottle):
    """Allows `API_REQUESTS_PER_MINUTE` per person, or per address without a user; and what `person_limits` allow.

    As many releases that release nothing are allowed besides, and all others.
    """

    def __init__(self) -> None:
        self.wait_s = 0

    def allow_request(self, request: Request, view: "APIView") -> bool:
        person = request.user.pk
        limit = settings.API_REQUESTS_PER_MINUTE
        if person and early_refusals.is_release(request._request):
            return True
        if person:
            use = person_limits.use(request._request, person, "api:user", limit)
        else:
            use = counters.use(f"api:address:{address_limits.network(request)}", limit)
        request._request.META[rate_limit_fields.USE] = use
        self.wait_s = use.wait_s if use else 0
        if self.wait_s:
            early_refusals.remember(request._request, _detail(limit), self.wait_s)
        elif person:
            person_limits.admit(request._request, person)
        return self.wait_s == 0

    def wait(self) -> float:
        return float(self.wait_s)


def _detail(limit: int) -> str:
    return f"At most {limit} requests a minute."


def releases(view: View[P]) -> View[P]:
    """Return the view of a release, whose body is small. What it takes and does without effect counts once the view
    calls `count_without_effect`; what is refused counts in any case (`count_refusal`). Those of one allocation, or of
    several by the same values, run beside each other only as far as other requests of a person.
    """

    @wraps(view)
    def small(request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_RELEASE:
            raise TooLarge(f"A release takes at most {MAX_RELEASE} bytes.", hint="Name what to release by filters.")
        what = request.path if kwargs else json.dumps(request.data, sort_keys=True)
        person_limits.admit_release(request._request, current_user(request).pk, what)
        return view(request, *args, **kwargs)

    return small


def count_refusal(request: Request, error: Exception) -> Exception:
    """Count a release that was refused with this error, wherever that happened; return the error to answer with, which
    is another one if the person has to wait.
    """
    is_unknown = isinstance(error, TooManyRequests | AuthenticationFailed | NotAuthenticated)
    if is_unknown or not early_refusals.is_release(request._request) or request.user.pk is None:
        return error
    try:
        count_without_effect(request)
    except TooManyRequests as limited:
        return limited
    return error


def count_without_effect(request: Request, *, is_for_good: bool = False) -> None:
    """Count a release that releases nothing, and admit it as any other request. ``is_for_good``: nor will the same
    address later. Raises TooManyRequests.
    """
    sent, person, limit = request._request, current_user(request).pk, settings.API_REQUESTS_PER_MINUTE
    if rate_limit_fields.USE in sent.META:
        return
    use = sent.META[rate_limit_fields.USE] = person_limits.use(sent, person, "api:release", limit)
    if use and use.wait_s:
        if is_for_good:
            early_refusals.remember(sent, _detail(limit), use.wait_s)
        raise TooManyRequests(_detail(limit), use.wait_s)
    person_limits.admit(sent, person, is_remembered=False)
