"""Counters per minute or a shorter window in Redis, exact under concurrency: one INCR decides."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple, TypeVar

import redis
import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

T = TypeVar("T")
PREFIX = "gpu-portal:count"
WINDOW_S = 60
TIMEOUT_S = 1.0
PAUSE_S = 5.0  # after a failure: a request must not wait for Redis' timeout each time
_paused_until = 0.0


class Unavailable(Exception):
    """Redis does not answer, so nothing can be counted."""


@cache
def client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)


def count(name: str, limit: int) -> int:
    """Count one use of `name`: return 0 for the first `limit` of this minute, else the seconds until the next.

    Raises `Unavailable` without Redis.
    """
    key, left_s = _window(name)
    return left_s if _run(lambda store: _increment(store, key)) > limit else 0


class LimitUse(NamedTuple):
    """How much of a limit is used in this window."""

    limit: int
    used: int
    reset_s: int

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def wait_s(self) -> int:
        return self.reset_s if self.used > self.limit else 0


def use(name: str, limit: int) -> LimitUse | None:
    """Count one use of `name`, and return how much of the limit is used; None without Redis, which counts nothing."""
    key, left_s = _window(name)
    try:
        return LimitUse(limit, _run(lambda store: _increment(store, key)), left_s)
    except Unavailable:
        return None


def use_and_wait(name: str, limit: int, other: str, other_limit: int, window_s: int) -> tuple[LimitUse | None, int]:
    """Do as `use` with `name` and as `wait_if_counted` with `other`, in one round trip."""
    key, left_s = _window(name)
    other_key, other_left_s = _window(other, window_s)

    def run(store: redis.Redis) -> tuple[int, int]:
        with store.pipeline(transaction=False) as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, WINDOW_S)
            pipeline.get(other_key)
            used, _, counted = pipeline.execute()
            return int(used), int(counted or 0)

    try:
        used, counted = _run(run)
    except Unavailable:
        return None, 0
    return LimitUse(limit, used, left_s), other_left_s if counted >= other_limit else 0


def wait(name: str, limit: int, window_s: int = WINDOW_S) -> int:
    """Return 0 while `name` was counted less than `limit` times in this window, else seconds until the next.

    Counts nothing. Raises `Unavailable` without Redis.
    """
    key, left_s = _window(name, window_s)
    return left_s if _run(lambda store: int(store.get(key) or 0)) >= limit else 0


def wait_if_counted(name: str, limit: int, window_s: int) -> int:
    """Return what `wait` returns, or 0 without Redis."""
    try:
        return wait(name, limit, window_s)
    except Unavailable:
        return 0


class Mark(NamedTuple):
    """A name that is marked for so many seconds."""

    name: str
    seconds: int


def add(name: str, amount: int, window_s: int, mark: Mark | None = None) -> tuple[int, int]:
    """Add `amount` to what `name` was counted in this window, and set the mark, in one round trip. Return what it is
    now, and the seconds until the next window; without Redis nothing is counted or marked, and it is 0.
    """
    key, left_s = _window(name, window_s)
    with suppress(Unavailable):
        return _run(lambda store: _increment(store, key, amount, window_s, mark)), left_s
    return 0, left_s


def hit(name: str, limit: int) -> int:
    """Count like `count`, but limit nothing without Redis: the portal continues, and logs it."""
    try:
        return count(name, limit)
    except Unavailable:
        return 0


def is_marked(name: str) -> bool:
    """Return whether `name` was marked, and its seconds have not passed. Raises `Unavailable` without Redis."""
    return bool(_run(lambda store: store.exists(f"{PREFIX}:{name}")))


def _window(name: str, window_s: int = WINDOW_S) -> tuple[str, int]:
    """Return the key of `name` for this window, and the seconds until the next."""
    window, passed = divmod(int(time.time()), window_s)
    return f"{PREFIX}:{name}:{window}", window_s - passed


def _increment(
    store: redis.Redis, key: str, amount: int = 1, window_s: int = WINDOW_S, mark: Mark | None = None
) -> int:
    with store.pipeline(transaction=False) as pipeline:  # one packet: where the first is done, so are the others
        pipeline.incr(key, amount)
        pipeline.expire(key, window_s)
        if mark is not None:
            pipeline.set(f"{PREFIX}:{mark.name}", 1, ex=mark.seconds)
        return int(pipeline.execute()[0])


def _run(command: Callable[[redis.Redis], T]) -> T:
    global _paused_until
    if time.monotonic() < _paused_until:
        raise Unavailable
    try:
        store = client()  # kept while it counts: of threads that come first one's is cached, the others' disconnect
        return command(store)
    except redis.RedisError as error:
        _paused_until = time.monotonic() + PAUSE_S
        log.warning("counter.unavailable", error=str(error))
        raise Unavailable from error
