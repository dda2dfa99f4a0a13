"""Argon2 password hashing with bounded concurrency: each hash takes 100 MiB and every core, and anyone may cause one by
signing in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher

from portal.core.errors import Busy

WAIT_S = 1.0


class Slots:
    """A semaphore with `size` slots; as many more wait up to `WAIT_S`, others are refused at once.

    The number of waiting threads is bounded too, since each keeps a thread of the web server from serving pages.
    """

    def __init__(self, size: int) -> None:
        self._running = BoundedSemaphore(size)
        self._inside = BoundedSemaphore(2 * size)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a slot during the block; raises `Busy` if none becomes free."""
        if not self._inside.acquire(blocking=False):
            raise _busy()
        try:
            if not self._running.acquire(timeout=WAIT_S):
                raise _busy()
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._inside.release()


SLOTS = Slots(max(1, settings.PASSWORD_HASHES_AT_ONCE))


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    """Django's hasher, in a slot. Django hashes for unknown names too, against timing attacks; that needs a slot as
    well.
    """

    def encode(self, password: str, salt: str) -> str:
        with SLOTS.one():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with SLOTS.one():
            return super().verify(password, encoded)


def _busy() -> Busy:
    return Busy("Too many passwords are being checked at this moment.", hint="Try again in a few seconds.")
