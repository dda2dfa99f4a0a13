"""Bounds how many threads of a process do the same thing at once, and how many wait for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from portal.core.errors import Busy


class Slots:
    """A semaphore with `size` slots; `waiting` more threads wait up to `wait_s`, others are refused at once.

    The number of waiting threads is bounded too, since each keeps a thread of the web server from serving others.
    """

    def __init__(self, size: int, waiting: int, wait_s: float, busy: Callable[[], Busy]) -> None:
        self._running = BoundedSemaphore(size)
        self._inside = BoundedSemaphore(size + waiting)
        self._wait_s, self._busy = wait_s, busy

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a slot during the block; raises what `busy` returns if none becomes free."""
        if not self._inside.acquire(blocking=False):
            raise self._busy()
        try:
            if not self._running.acquire(timeout=self._wait_s):
                raise self._busy()
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._inside.release()
