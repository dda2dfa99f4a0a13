"""Limits how many requests of one person run at once, and how much processor time they take.

Requests differ a hundredfold in cost, so a limit on their number alone lets one person keep every web process busy.
GitHub limits its REST API in both ways too (docs.github.com, "Rate limits for the REST API").
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from portal.core.errors import TooManyRequests
from portal.core.slots import Slots
from portal.http import counters, early_refusals

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
_slots: WeakValueDictionary[int, Slots] = WeakValueDictionary()
_lock = Lock()


def use(request: HttpRequest, person: int, scope: str, limit: int, budget: str = "") -> counters.LimitUse | None:
    """Count one request of the person in this `scope`, and read the processor time for `admit`, in one round trip;
    return how much of the limit is used, None without Redis.
    """
    name = f"{scope}:{person}"
    found, request.META[WAIT] = counters.use_and_wait(name, limit, _name(person, budget), _limit_ms(), WINDOW_S)
    return found


def admit(request: HttpRequest, person: int, budget: str = "") -> None:
    """Count the request as the person's until it ends. What has a `budget` of its own has as much processor time again,
    and is not refused for what other requests took.

    Raises `TooManyRequests` if the person's requests have used up their processor time, or too many run or wait.
    """
    request.META[PERSON] = person
    name = request.META[COUNTED] = _name(person, budget)
    if WAIT not in request.META:
        request.META[WAIT] = counters.wait_if_counted(name, _limit_ms(), WINDOW_S)
    if wait_s := request.META[WAIT]:
        seconds = f"{_limit_ms() / 1000:.1f} seconds of processor time within {WINDOW_S} seconds"
        early_refusals.refuse(request, f"Your requests took more than {seconds}.", wait_s)
    try:
        request.META[SLOT].enter_context(_slots_of(person).one())
    except TooManyRequests as refusal:
        early_refusals.remember(request, refusal.detail, refusal.retry_after_s)
        raise


def limit_person(get_response: GetResponse) -> GetResponse:
    """Free the person's slot when the request ends, and count its processor time and that of a streamed answer."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        start = time.thread_time()
        with ExitStack() as request.META[SLOT]:
            response = get_response(request)
            name = request.META.get(COUNTED)
        if name is not None:
            _count(name, start, request.META.get(MARK))
        if name is not None and isinstance(response, StreamingHttpResponse):
            response.streaming_content = _counted(name, iter(response))
        return response

    return middleware


def _slots_of(person: int) -> Slots:
    """Return the slots that all requests of the person in this process share; kept while one of them uses them."""
    size = settings.PERSON_REQUESTS_AT_ONCE
    with _lock:
        return _slots.setdefault(person, Slots(size, WAITING * size, WAIT_S, _busy))


def _busy() -> TooManyRequests:
    return TooManyRequests("Too many of your requests run at this moment.", 1)


def _counted(name: str, content: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts of an answer; what making each of them takes is counted."""
    start = time.thread_time()
    for part in content:
        _count(name, start)
        yield part
        start = time.thread_time()


def _count(name: str, start: float, mark: counters.Mark | None = None) -> None:
    counters.add(name, round((time.thread_time() - start) * 1000), WINDOW_S, mark)


def _name(person: int, budget: str) -> str:
    return f"processor-ms:{budget}:{person}" if budget else f"processor-ms:{person}"


def _limit_ms() -> int:
    return int(settings.PROCESSOR_SECONDS_PER_MINUTE * 1000 * WINDOW_S // 60)
