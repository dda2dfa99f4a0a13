"""Waits for a condition with a deadline; tests have no other sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], *errors: type[BaseException], within_s: float = 60.0, every_s: float = 0.1) -> T:
    """Return the first true value of ``check``; exceptions in ``errors`` count as not yet true.

    Raises AssertionError with the last value or error when the deadline passes.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            last: object = (value := check())
            if value:
                return value
        except errors as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s; last: {last!r}")
        time.sleep(every_s)
