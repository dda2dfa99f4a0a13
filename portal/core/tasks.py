from celery import shared_task

from portal.core import due, heartbeat


@shared_task(name="core.sweep")
def sweep() -> None:
    due.sweep()


@shared_task(name="core.heartbeat")
def beat() -> None:
    heartbeat.beat("worker")
