from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.http import address_limits, counters, early_refusals, person_limits, rate_limit_fields

if TYPE_CHECKING:
    from rest_framework.views import APIView  # DRF imports this module while it loads its views


class PersonThrottle(BaseThrottle):
    """Allows `API_REQUESTS_PER_MINUTE` per person, or per address without a user; and what `person_limits` allow.

    As many releases are allowed besides, whatever else the person has used up.
    """

    def __init__(self) -> None:
        self.wait_s = 0

    def allow_request(self, request: Request, view: "APIView") -> bool:
        person = request.user.pk
        limit = settings.API_REQUESTS_PER_MINUTE
        if person:
            is_release = early_refusals.is_release(request._request)
            use = person_limits.use(request._request, person, "api:release" if is_release else "api:user", limit)
            if is_release:
                request._request.META[person_limits.WAIT] = 0
        else:
            use = counters.use(f"api:address:{address_limits.network(request)}", limit)
        request._request.META[rate_limit_fields.USE] = use
        self.wait_s = use.wait_s if use else 0
        if self.wait_s:
            detail = f"At most {limit} requests a minute."
            early_refusals.remember(request._request, detail, self.wait_s)
        elif person:
            person_limits.admit(request._request, person)
        return self.wait_s == 0

    def wait(self) -> float:
        return float(self.wait_s)
