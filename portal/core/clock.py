"""The only reader of the system clock. Tests freeze it; the work queue corrects it by the database's clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

_frozen: ContextVar[datetime | None] = ContextVar("frozen", default=None)
_correction: ContextVar[timedelta] = ContextVar("correction", default=timedelta(0))


def now() -> datetime:
    """Return the time in UTC: the frozen time, or the system clock plus the correction."""
    return frozen_at() or datetime.now(UTC) + _correction.get()


def this_minute() -> datetime:
    """Return the beginning of the present minute, in UTC."""
    return now().replace(second=0, microsecond=0)


def frozen_at() -> datetime | None:
    """Return the time at which the clock is frozen, or None."""
    return _frozen.get()


@contextmanager
def corrected(by: timedelta) -> Iterator[None]:
    """Add `by` to the system clock in this thread, for the duration of the block."""
    token = _correction.set(_correction.get() + by)
    try:
        yield
    finally:
        _correction.reset(token)


@contextmanager
def frozen(at: datetime) -> Iterator[datetime]:
    """Freeze the clock at `at`, an aware time, in this thread, for the duration of the block."""
    if at.tzinfo is None:
        raise ValueError("the clock can only be frozen at an aware time")
    token = _frozen.set(at)
    try:
        yield at
    finally:
        _frozen.reset(token)
