"""Celery messages that say "this target may be due". Never an error: who loses one is found by the sweep."""

import time
from collections.abc import Sequence

import structlog
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

TASK = "allocations.reconcile"
PAUSE_S = 5.0  # after a failure: a request must not wait for the broker's timeout each time
_paused_until = 0.0


def send(targets: Sequence[str]) -> None:
    """Hint at each target, unless the broker failed a moment ago."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    try:
        for target in targets:
            current_app.send_task(TASK, args=[target], retry=False, expires=settings.STALE_S)
    except (OperationalError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_S
        log.warning("hint.unsent", error=str(error), targets=len(targets))
