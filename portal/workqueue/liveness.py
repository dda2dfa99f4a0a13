"""Ends a worker that takes no messages any more although some wait, so that what runs it starts another.

A Celery worker may stop consuming after its broker was away, without an error and for good (celery issues 8030, 8091);
its heartbeat at the broker goes on. Kubernetes restarts a container that exits, as the supervisor of `deploy.local`
does.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from celery.signals import task_received, worker_ready
from celery.worker.consumer import Consumer
from django.conf import settings

from portal.core import alive
from portal.workqueue import wakeups

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 5.0
EX_SOFTWARE = 70
_taken = threading.Event()


class Patience:
    """How long messages have been waiting without one being taken, from looks at monotonic times in seconds."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._since: float | None = None

    def is_over(self, now: float, *, waiting: int, taken: bool) -> bool:
        """Return whether `limit_s` have passed in which messages waited at each look and none was taken."""
        if taken or not waiting:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since >= self.limit_s


@task_received.connect
def _note_taken(**_: object) -> None:
    _taken.set()


@worker_ready.connect
def _watch(sender: Consumer, **_: object) -> None:
    threading.Thread(target=_look, args=(lambda: _end(sender),), name="liveness", daemon=True).start()


def _look(end: Callable[[], None]) -> None:
    patience = Patience(settings.WORKER_STUCK_S)
    while True:
        time.sleep(LOOK_EVERY_S)
        taken = _taken.is_set()
        _taken.clear()
        waiting = 0  # also while the broker does not respond: the consumer waits for it too
        with suppress(*wakeups.FAILURES):
            waiting = wakeups.waiting()
        if patience.is_over(time.monotonic(), waiting=waiting, taken=taken):
            log.error("worker.stuck", waiting=waiting, limit_s=settings.WORKER_STUCK_S)
            end()
        alive.touch()


def _end(consumer: Consumer) -> None:
    """Exit at once: an orderly shutdown waits for the very loop that is stuck. What was begun is due again."""
    for pid in consumer.pool.info["processes"]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(EX_SOFTWARE)
