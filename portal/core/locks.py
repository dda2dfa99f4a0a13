"""PostgreSQL advisory locks named by words."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from portal.core.errors import Retryable


def lock_id(*key: str) -> int:
    """The signed 64-bit number that PostgreSQL locks for these words: a hash of them."""
    digest = hashlib.blake2b("\0".join(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@contextmanager
def advisory_lock(*key: str, wait_s: float = 10.0) -> Iterator[None]:
    """Hold the lock `key` during the block; Retryable if another session keeps it for longer than `wait_s`.

    Outside a transaction it is released at the end of the block. Inside one it is held until the transaction
    ends, since whoever comes next must see what was written under it.
    """
    id_ = lock_id(*key)
    if connection.in_atomic_block:
        _acquire("pg_advisory_xact_lock", id_, key, wait_s)
        yield
        return
    _acquire("pg_advisory_lock", id_, key, wait_s)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [id_])


def _acquire(function: str, id_: int, key: tuple[str, ...], wait_s: float) -> None:
    # Mostly it is free, and then one statement is all.
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function.replace('pg_', 'pg_try_', 1)}(%s)", [id_])
        if cursor.fetchone() == (True,):
            return
    # A transaction of its own (or a savepoint) keeps lock_timeout from outliving the call; a session
    # lock outlives it.
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{int(wait_s * 1000)}ms"])
            cursor.execute(f"SELECT {function}(%s)", [id_])
            cursor.execute("SELECT set_config('lock_timeout', '0', true)")
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise Retryable(f"{'/'.join(key)} is locked by someone else") from error
        raise
