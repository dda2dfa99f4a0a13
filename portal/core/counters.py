"""Counting per minute in Redis: exact under concurrency, since one INCR decides."""

import time
from functools import cache

import redis
import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

WINDOW_S = 60
PAUSE_S = 5.0  # after a failure: a request must not wait for Redis' timeout each time
_paused_until = 0.0


@cache
def client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.25, socket_connect_timeout=0.25)


def hit(name: str, limit: int) -> int:
    """Count one use of `name`: 0 if among the first `limit` of this minute, else seconds until the next.

    Without Redis nothing is limited: the portal serves on, and says so in its log.
    """
    global _paused_until
    if time.monotonic() < _paused_until:
        return 0
    window, passed = divmod(int(time.time()), WINDOW_S)
    key = f"gpu-portal:count:{name}:{window}"
    try:
        store = client()  # kept while it counts: of threads that come first one's is cached, the others' disconnect
        with store.pipeline() as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, WINDOW_S)
            count, _ = pipeline.execute()
    except redis.RedisError as error:
        _paused_until = time.monotonic() + PAUSE_S
        log.warning("counter.unavailable", error=str(error))
        return 0
    return WINDOW_S - passed if count > limit else 0
