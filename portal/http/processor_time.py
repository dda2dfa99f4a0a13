"""Limits how much processor time the requests of one person take.

Requests differ a hundredfold in cost, so a limit on their number alone lets one person keep every web process busy.
GitHub limits its REST API by processor time too (docs.github.com, "Rate limits for the REST API").
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from portal.core.errors import TooManyRequests
from portal.http import counters

WINDOW_S = 10
"""Short, so that nobody who exceeds the limit waits for long."""
PERSON = "PERSON"
"""In `request.META`: the id of the person whose request it is, once that is known."""


def require_time(request: HttpRequest, person: int) -> None:
    """Count what the request takes as the person's; raise `TooManyRequests` if the person has used up the limit."""
    request.META[PERSON] = person
    if wait_s := counters.wait_if_counted(_name(person), _limit_ms(), WINDOW_S):
        seconds = f"{_limit_ms() / 1000:.1f} seconds of processor time within {WINDOW_S} seconds"
        raise TooManyRequests(f"Your requests took more than {seconds}.", wait_s)


def count_processor_time(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Count the processor time of a request, and of an answer that is streamed, as its person's."""

    def middleware(request: HttpRequest) -> HttpResponse:
        start = time.thread_time()
        response = get_response(request)
        person = request.META.get(PERSON)
        if person is not None:
            _count(person, start)
            if response.streaming:
                response.streaming_content = _counted(person, response.streaming_content)
        return response

    return middleware


def _counted(person: int, content: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts of an answer; what making each of them takes is counted."""
    start = time.thread_time()
    for part in content:
        _count(person, start)
        yield part
        start = time.thread_time()


def _count(person: int, start: float) -> None:
    counters.add(_name(person), round((time.thread_time() - start) * 1000), WINDOW_S)


def _name(person: int) -> str:
    return f"processor-ms:{person}"


def _limit_ms() -> int:
    return settings.PROCESSOR_SECONDS_PER_MINUTE * 1000 * WINDOW_S // 60
