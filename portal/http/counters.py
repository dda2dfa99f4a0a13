"""Counters per minute in Redis, exact under concurrency: one INCR decides."""

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import redis
import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

T = TypeVar("T")
WINDOW_S = 60
PAUSE_S = 5.0  # after a failure: a request must not wait for Redis' timeout each time
_paused_until = 0.0


class Unavailable(Exception):
    """Redis does not answer, so nothing can be counted."""


@cache
def client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.25, socket_connect_timeout=0.25)


def count(name: str, limit: int) -> int:
    """Count one use of `name`: return 0 for the first `limit` of this minute, else the seconds until the next.

    Raises `Unavailable` without Redis.
    """
    key, left_s = _window(name)

    def increment(store: redis.Redis) -> int:
        with store.pipeline() as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, WINDOW_S)
            return int(pipeline.execute()[0])

    return left_s if _ask(increment) > limit else 0


def wait(name: str, limit: int) -> int:
    """Return 0 while `name` was counted less than `limit` times this minute, else seconds until the next.

    Counts nothing. Raises `Unavailable` without Redis.
    """
    key, left_s = _window(name)
    return left_s if _ask(lambda store: int(store.get(key) or 0)) >= limit else 0


def hit(name: str, limit: int) -> int:
    """Count like `count`, but limit nothing without Redis: the portal continues, and logs it."""
    try:
        return count(name, limit)
    except Unavailable:
        return 0


def _window(name: str) -> tuple[str, int]:
    """Return the key of `name` for this minute, and the seconds until the next."""
    window, passed = divmod(int(time.time()), WINDOW_S)
    return f"gpu-portal:count:{name}:{window}", WINDOW_S - passed


def _ask(command: Callable[[redis.Redis], T]) -> T:
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
