"""The only reader of the system clock; tests freeze it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_frozen: ContextVar[datetime | None] = ContextVar("frozen", default=None)


def now() -> datetime:
    """The time in UTC, or what `frozen` says."""
    return _frozen.get() or datetime.now(UTC)


@contextmanager
def frozen(at: datetime) -> Iterator[datetime]:
    """Hold the clock at `at`, which must be aware, for this thread and block."""
    if at.tzinfo is None:
        raise ValueError("the clock can only be frozen at an aware time")
    token = _frozen.set(at)
    try:
        yield at
    finally:
        _frozen.reset(token)
