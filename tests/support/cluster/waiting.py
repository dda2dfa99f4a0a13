"""Waits for a condition with a deadline; tests have no other sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

FIRST_S, LONGEST_S = 0.02, 0.25
"""The pauses between checks grow from the one to the other: a tenth of what has been waited so far."""
T = TypeVar("T")


def eventually(check: Callable[[], T], *errors: type[BaseException], within_s: float = 60.0, every_s: float = 0.0) -> T:
    """Return the first true value of ``check``; exceptions in ``errors`` count as not yet true.

    ``every_s`` is a pause that is longer than usual. Raises AssertionError with the last value or error when the
    deadline passes.
    """
    began = time.monotonic()
    while True:
        try:
            last: object = (value := check())
            if value:
                return value
        except errors as error:
            last = error
        if (waited := time.monotonic() - began) > within_s:
            raise AssertionError(f"not within {within_s:g} s; last: {last!r}")
        time.sleep(every_s or min(max(FIRST_S, waited / 10), LONGEST_S))
