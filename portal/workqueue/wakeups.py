"""Best-effort Celery messages that wake a worker for a due target; the periodic sweep finds anything missed.

They use a connection of their own, with the timeouts of a request and without retries: Celery's default waits seconds
for a broker that is down and minutes for one that hangs, which suits a worker and not a person.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import structlog
from celery import current_app
from django.conf import settings
from kombu import Connection
from kombu.exceptions import KombuError
from kombu.pools import producers
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)

TASK = "workqueue.reconcile"
TIMEOUT_S = 0.5
FIRST, LAST = 0, 9
"""Priorities of messages in Redis: workers take all of the first before one of the last."""
FAILURES = (KombuError, RedisError, OSError)
"""What a broker that is down, or that hangs, raises here."""
PAUSE_S = 5.0  # after a failure: nobody waits for the same timeout twice in a row
_paused_until = 0.0


def send(targets: Sequence[str], priority: int = FIRST) -> None:
    """Send a wake-up for each target, unless the broker failed a moment ago. One round trip for all."""
    global _paused_until
    if not targets or time.monotonic() < _paused_until:
        return
    try:
        with producers[_connection()].acquire(block=True, timeout=TIMEOUT_S) as producer, _together(producer, targets):
            for target in targets:
                current_app.send_task(
                    TASK, [target], producer=producer, retry=False, expires=settings.STALE_S, priority=priority
                )
    except FAILURES as error:
        _paused_until = time.monotonic() + PAUSE_S
        log.warning("wakeup.unsent", error=str(error), targets=len(targets))


def _together(producer: Any, targets: Sequence[str]) -> AbstractContextManager[object]:
    """Return the context in which the messages of several targets are sent at its end."""
    together: AbstractContextManager[object] = producer.batch() if len(targets) > 1 else nullcontext()
    return together


def waiting() -> int:
    """Return how many messages wait for a worker. Raises FAILURES."""
    with _connection().clone() as connection:
        try:
            channel: Any = connection.default_channel  # typed without its methods
            queue = channel.queue_declare(current_app.conf.task_default_queue, passive=True)
        except connection.channel_errors:  # Redis has no empty lists
            return 0
        return int(queue.message_count)


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
