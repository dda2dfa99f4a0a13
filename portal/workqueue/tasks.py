from celery import shared_task

from portal.workqueue import liveness  # noqa: F401 (watches the worker from when it is ready)
from portal.workqueue import queue as workqueue


@shared_task(name="core.sweep")
def sweep() -> None:
    workqueue.sweep()
