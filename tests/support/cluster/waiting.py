"""Waiting for a condition with a deadline; there are no sleeps elsewhere in these tests."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *errors: type[BaseException], within_s: float = 30.0, every_s: float = 0.1) -> T:
    """The first true value that ``look`` returns; what it raises of ``errors`` counts as not yet.

    Raises AssertionError with the last value or error when the deadline passes.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            last: object = (value := look())
            if value:
                return value
        except errors as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s; last: {last!r}")
        time.sleep(every_s)
