"""PostgreSQL advisory locks named by words, and the type of functions that lock one row."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from portal.core.errors import Retryable

RowT = TypeVar("RowT")
RowLock = Callable[[RowT], RowT]
"""Returns the row as it is now, kept from others until the transaction ends; raises where that is not what was read."""


_held: ContextVar[frozenset[int]] = ContextVar("held_locks", default=frozenset())


def unlocked(row: RowT) -> RowT:
    """Return the row without locking it: the RowLock of callers that read nothing before."""
    return row


def lock_id(*key: str) -> int:
    """Return the signed 64-bit number that PostgreSQL locks for these words: a hash of them."""
    digest = hashlib.blake2b("\0".join(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@contextmanager
def advisory_lock(*key: str, wait_s: float = 10.0, shared: bool = False) -> Iterator[None]:
    """Hold the lock `key` during the block; raise Retryable if another session keeps it for longer than `wait_s`.

    A `shared` lock keeps out exclusive ones only. In a transaction the lock is held until the transaction ends, so that
    the next holder sees what was written; otherwise until the end of the block. In a block of `holding` this one, it is
    held already.
    """
    id_, suffix = lock_id(*key), "_shared" if shared else ""
    if id_ in _held.get():
        yield
        return
    if connection.in_atomic_block:
        _acquire(f"pg_advisory_xact_lock{suffix}", id_, key, wait_s)
        yield
        return
    _acquire(f"pg_advisory_lock{suffix}", id_, key, wait_s)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_unlock{suffix}(%s)", [id_])


class Lock(NamedTuple):
    """An advisory lock named by words; a `shared` one keeps out exclusive ones only."""

    key: tuple[str, ...]
    shared: bool = False


@contextmanager
def advisory_locks(*locks: Lock) -> Iterator[None]:
    """Hold all these locks until the transaction ends, in one statement where they are free; raise Retryable as
    `advisory_lock`.

    They are taken in this order. None of those behind a lock that is not free is taken before it.
    """
    tries = [f"pg_try_advisory_xact_lock{'_shared' if one.shared else ''}(%s)" for one in locks]
    nested = "true"
    for attempt in reversed(tries):
        nested = f"CASE WHEN {attempt} THEN {nested} ELSE false END"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {nested}", [lock_id(*one.key) for one in locks])
        (are_free,) = cursor.fetchone()
    with ExitStack() as waits:
        for one in () if are_free else locks:
            waits.enter_context(advisory_lock(*one.key, shared=one.shared))
        yield


@contextmanager
def holding(id_: int) -> Iterator[None]:
    """Have `advisory_lock` take the lock with this number as held: the caller took it in a statement of its own."""
    token = _held.set(_held.get() | {id_})
    try:
        yield
    finally:
        _held.reset(token)


def take_session_lock(*key: str) -> bool:
    """Take the lock `key` for as long as this connection lasts; return False at once if another session has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock_id(*key)])
        return bool(cursor.fetchone() == (True,))


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
