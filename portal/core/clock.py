"""The only reader of the system clock; tests freeze it, and looks of the due list correct it by the database's."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

_frozen: ContextVar[datetime | None] = ContextVar("frozen", default=None)
_correction: ContextVar[timedelta] = ContextVar("correction", default=timedelta(0))


def now() -> datetime:
    """The time in UTC, corrected as `corrected` says; or what `frozen` says."""
    return held() or datetime.now(UTC) + _correction.get()


def held() -> datetime | None:
    """What `frozen` says, or None while the clock goes."""
    return _frozen.get()


@contextmanager
def corrected(by: timedelta) -> Iterator[None]:
    """Add `by` to this machine's clock, for this thread and block."""
    token = _correction.set(_correction.get() + by)
    try:
        yield
    finally:
        _correction.reset(token)


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
