"""Limits how many requests of one person run at once, and how much processor time they take.

Requests differ a hundredfold in cost, so a limit on their number alone lets one person keep every web process busy.
GitHub limits its REST API in both ways too (docs.github.com, "Rate limits for the REST API"). Whoever is not signed in
has a limit of processor time by address.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from portal.core.errors import TooManyRequests
from portal.core.slots import Slots
from portal.http import address_limits, counters, early_refusals
from portal.http.middleware import refusal

GetResponse = Callable[[HttpRequest], HttpResponseBase]
WINDOW_S = 30
"""Long enough for the pages that a browser opens together, short enough that nobody who exceeds it waits for long."""
WAITING, WAIT_S = 8, 10.0
"""How many more wait for each that runs, and for how long: enough for the tabs that a browser opens together."""
PERSON, COUNTED, SLOT, WAIT, MARK = "PERSON", "PERSON_COUNTED", "PERSON_SLOT", "PERSON_WAIT_S", "PERSON_MARK"
"""In `request.META`: the id of the person whose request it is, once that is known, as what its processor time is
counted, what is open until it ends, for how many seconds the person has to wait, if that was read already, and what is
to be marked with the processor time.
"""
PROBES = ("/livez", "/readyz")
"""Asked by kubelet and load balancers, whatever others at their address do. They take little."""
_exhausted: dict[str, int] = {}
"""Until when networks have used up their processor time, in seconds since the epoch, as this process has seen."""
_slots: WeakValueDictionary[Hashable, Slots] = WeakValueDictionary()
_lock = Lock()


def use(request: HttpRequest, person: int, scope: str, limit: int, budget: str = "") -> counters.LimitUse | None:
    """Count one request of the person in this `scope`, and read the processor time for `admit`, in one round trip;
    return how much of the limit is used, None without Redis.
    """
    name = f"{scope}:{person}"
    found, request.META[WAIT] = counters.use_and_wait(name, limit, _name(person, budget), _limit_ms(), WINDOW_S)
    return found


def admit(request: HttpRequest, person: int, budget: str = "", *, is_remembered: bool = True) -> None:
    """Count the request as the person's until it ends. What has a `budget` of its own has as much processor time again,
    and is not refused for what other requests took.

    Raises `TooManyRequests` if the person's requests have used up their processor time, or too many run or wait. Unless
    it `is_remembered`, later requests to the address are not refused early for it.
    """
    request.META[PERSON] = person
    name = request.META[COUNTED] = _name(person, budget)
    if WAIT not in request.META:
        request.META[WAIT] = counters.wait_if_counted(name, _limit_ms(), WINDOW_S)
    if wait_s := request.META[WAIT]:
        seconds = f"{_limit_ms() / 1000:.1f} seconds of processor time within {WINDOW_S} seconds"
        words = f"Your requests took more than {seconds}."
        if is_remembered:
            early_refusals.remember(request, words, wait_s)
        raise TooManyRequests(words, wait_s)
    try:
        request.META[SLOT].enter_context(_slots_of(person).one())
    except TooManyRequests as refused:
        if is_remembered:
            early_refusals.remember(request, refused.detail, refused.retry_after_s)
        raise


def admit_release(request: HttpRequest, person: int, what: str) -> None:
    """Count a release until it ends with the person's others of the same: they wait for no other request, and no other
    for them. Raises TooManyRequests if too many run or wait.
    """
    request.META[SLOT].enter_context(_slots_of((person, what)).one())


def limit_client(get_response: GetResponse) -> GetResponse:
    """Free the person's slot when the request ends, and count its processor time and that of a streamed answer, for the
    person or else for the address. 429 for whoever is not signed in, if the address has used up its processor time.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path in PROBES:
            return get_response(request)
        start = time.thread_time()
        if _exhausted and (wait_s := _exhausted_s(request)) and not _is_signed_in(request):
            seconds = f"{_anonymous_limit_ms() / 1000:.1f} seconds of processor time within {WINDOW_S} seconds"
            words = f"Requests from your address, of people who are not signed in, took more than {seconds}."
            return refusal(request, TooManyRequests(words, wait_s))
        with ExitStack() as request.META[SLOT]:
            response = get_response(request)
            name, network = request.META.get(COUNTED), ""
        if name is None:
            person = getattr(getattr(request, "user", None), "pk", None)
            network = "" if person else address_limits.network(request)
            name = _name(person or network)
        _count(name, start, request.META.get(MARK), network)
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = _counted(name, iter(response), network)
        return response

    return middleware


def _exhausted_s(request: HttpRequest) -> int:
    """Return for how many seconds nobody at the address of the request is answered who is not signed in."""
    return max(0, _exhausted.get(address_limits.network(request), 0) - int(time.time()))


def _is_signed_in(request: HttpRequest) -> bool:
    """Return whether a session exists, in one query, or a token was sent: those that are wrong are limited by number
    (`WRONG_TOKENS_PER_MINUTE`).
    """
    if "Authorization" in request.headers:
        return True
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    return bool(key) and SESSION_KEY in SessionStore(key)


def _slots_of(person: Hashable) -> Slots:
    """Return the slots that all requests of the person in this process share, or those for one thing; kept while one
    of them uses them.
    """
    size = settings.PERSON_REQUESTS_AT_ONCE
    with _lock:
        return _slots.setdefault(person, Slots(size, WAITING * size, WAIT_S, _busy))


def _busy() -> TooManyRequests:
    return TooManyRequests("Too many of your requests run at this moment.", 1)


def _counted(name: str, content: Iterator[Any], network: str) -> Iterator[Any]:
    """Yield the parts of an answer; what making each of them takes is counted."""
    start = time.thread_time()
    for part in content:
        _count(name, start, network=network)
        yield part
        start = time.thread_time()


def _count(name: str, start: float, mark: counters.Mark | None = None, network: str = "") -> None:
    """Count processor time of a person, or of a network; note a network that has used up its limit."""
    spent_ms, left_s = counters.add(name, round((time.thread_time() - start) * 1000), WINDOW_S, mark)
    if network and spent_ms >= _anonymous_limit_ms():
        with _lock:
            _exhausted.pop(network, None)
            _exhausted[network] = int(time.time()) + left_s
            if len(_exhausted) > early_refusals.REMEMBERED:
                del _exhausted[next(iter(_exhausted))]


def _name(client: int | str, budget: str = "") -> str:
    return f"processor-ms:{budget}:{client}" if budget else f"processor-ms:{client}"


def _anonymous_limit_ms() -> int:
    return int(settings.ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE * 1000 * WINDOW_S // 60)


def _limit_ms() -> int:
    return int(settings.PROCESSOR_SECONDS_PER_MINUTE * 1000 * WINDOW_S // 60)
