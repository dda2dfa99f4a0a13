"""Limits per client address and minute, on failed sign-ins and wrong bearer tokens.

Only failures count, since many people may share one address behind NAT.
"""

from django.conf import settings
from django.http import HttpRequest

from portal.http import client_address, counters, middleware


def network(request: HttpRequest) -> str:
    return client_address.network(middleware.address(request))


def failed_sign_ins_wait(request: HttpRequest) -> int:
    """Return the seconds until a password from this address is checked again; raises `counters.Unavailable`."""
    return counters.wait(_failed_sign_ins(request), settings.LOGIN_FAILURES_PER_MINUTE)


def count_failed_sign_in(request: HttpRequest) -> None:
    """Count a failed sign-in of the address; raises `counters.Unavailable`."""
    counters.count(_failed_sign_ins(request), settings.LOGIN_FAILURES_PER_MINUTE)


def count_wrong_token(request: HttpRequest) -> int:
    """Count a wrong token of the address: return 0 within the limit, else the seconds to wait. Without Redis nothing is
    limited.
    """
    return counters.hit(f"wrong-token:{network(request)}", settings.WRONG_TOKENS_PER_MINUTE)


def _failed_sign_ins(request: HttpRequest) -> str:
    return f"login-failure:{network(request)}"
