from celery import shared_task

from portal.workqueue import (
    controllers,
    liveness,  # noqa: F401 (watches the worker from when it is ready)
    wakeups,
)
from portal.workqueue import queue as workqueue


@shared_task(name=wakeups.TASK)
def reconcile(target: str) -> None:
    controllers.process(target)


@shared_task(name="core.sweep")
def sweep() -> None:
    workqueue.sweep()
