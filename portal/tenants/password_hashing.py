"""Argon2 password hashing with bounded memory, processor time and concurrency, since anyone may cause a hash by signing
in.
"""

from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher

from portal.core.errors import Busy
from portal.core.slots import Slots


def busy() -> Busy:
    return Busy("Too many passwords are being checked at this moment.", hint="Try again in a few seconds.")


WAIT_S = 1.0
SIZE = max(1, settings.PASSWORD_HASHES_AT_ONCE)
SLOTS = Slots(SIZE, SIZE, WAIT_S, busy)


class BoundedArgon2PasswordHasher(Argon2PasswordHasher):
    """Django's hasher, in a slot. Django hashes for unknown names too, against timing attacks; that needs a slot as
    well.

    The parameters are those of OWASP's Password Storage Cheat Sheet for Argon2id: 46 MiB, one pass, one thread. Those
    of Django, 100 MiB and eight threads, take four times as much processor time. A password that was hashed with other
    parameters is hashed again when its owner signs in.
    """

    memory_cost = 47_104
    time_cost = 1
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with SLOTS.one():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with SLOTS.one():
            return super().verify(password, encoded)
