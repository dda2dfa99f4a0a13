"""Best-effort Celery messages that wake a worker for a due target; the periodic sweep finds anything missed.

They use a connection of their own, with the timeouts of a request and without retries: Celery's default waits seconds
for a broker that is down and minutes for one that hangs, which suits a worker and not a person.
"""

import time
from collections.abc import Sequence
from functools import cache

import structlog
from celery import current_app
from django.conf import settings
from kombu import Connection
from kombu.exceptions import KombuError
from kombu.pools import producers
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

TASK = "allocations.reconcile"
TIMEOUT_S = 0.5
FIRST, LAST = 0, 9
"""Priorities of messages in Redis: workers take all of the first before one of the last."""
PAUSE_S = 5.0  # after a failure: nobody waits for the same timeout twice in a row
_paused_until = 0.0


def send(targets: Sequence[str], priority: int = FIRST) -> None:
    """Send a wake-up for each target, unless the broker failed a moment ago."""
    global _paused_until
    if not targets or time.monotonic() < _paused_until:
        return
    try:
        with producers[_connection()].acquire(block=True, timeout=TIMEOUT_S) as producer:
            for target in targets:
                current_app.send_task(
                    TASK, [target], producer=producer, retry=False, expires=settings.STALE_S, priority=priority
                )
    except (KombuError, RedisError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_S
        log.warning("wakeup.unsent", error=str(error), targets=len(targets))


@cache
def _connection() -> Connection:
    options = {
        **settings.CELERY_BROKER_TRANSPORT_OPTIONS,
        "socket_connect_timeout": TIMEOUT_S,
        "socket_timeout": TIMEOUT_S,
        "retry_on_timeout": False,
        "max_retries": 0,
        "connect_retries_timeout": TIMEOUT_S,
    }
    return current_app.connection_for_write(transport_options=options)
