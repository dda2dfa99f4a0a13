"""The Celery application.

Messages only wake workers up: losing or repeating one changes nothing (see `portal.workqueue.queue`).
"""

import os
import time
from contextlib import suppress
from functools import partial
from typing import Any

from celery import Celery, Task
from celery.beat import PersistentScheduler
from celery.signals import task_prerun
from celery.worker.consumer import Consumer
from django.conf import settings
from django.db import close_old_connections, connection
from kombu import Connection
from kombu.exceptions import KombuError

from portal.audit import context
from portal.core import alive
from portal.workqueue.unacknowledged import WakeupQoS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


class SwiftConsumer(Consumer):
    """A consumer that retries a lost broker every two seconds at most; kombu's own pauses grow to 30.

    Once connected it has what is due swept, since a broker that was away may have lost all messages. It tells other
    workers nothing of itself: Celery's heartbeats and gossip are messages every two seconds, and nobody reads them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        alone = dict.fromkeys(("without_gossip", "without_mingle", "without_heartbeat"), True)
        super().__init__(*args, **{**options, **alone})

    def ensure_connected(self, conn: Connection) -> Connection:
        swift = partial(conn.ensure_connection, interval_start=1, interval_step=1, interval_max=2)
        conn.ensure_connection = swift  # type: ignore[method-assign]  # the pauses are no setting of Celery's
        connected = super().ensure_connected(conn)
        channel: Any = connected.default_channel  # typed without what virtual channels have
        channel.QoS = WakeupQoS  # before the first message is taken
        with suppress(KombuError, OSError):  # then the next periodic sweep finds what is due
            self.app.send_task("core.sweep", retry=False, expires=settings.SWEEP_S)
        return connected


class Scheduler(PersistentScheduler):
    """Beat's schedule, which tells probes that it goes on."""

    def tick(self, *args: Any, **options: Any) -> float:
        alive.touch()
        return super().tick(*args, **options)


@task_prerun.connect
def set_channel(task: Task, **_: object) -> None:
    """Set the audit log's channel for a task."""
    context.begin("worker", task=task.name)


CHECK_CONNECTION_S = 2.0
_checked_at = float("-inf")


@task_prerun.connect
def drop_broken_connections(**_: object) -> None:
    """Close broken database connections before a task, as Django does before a request; others are kept between
    tasks. A connection that was checked a moment ago is trusted until it fails; the work queue repeats what failed.
    """
    global _checked_at
    if connection.errors_occurred or time.monotonic() - _checked_at >= CHECK_CONNECTION_S:
        close_old_connections()
        _checked_at = time.monotonic()
