from celery import shared_task

from portal.core import heartbeat


@shared_task(name="core.heartbeat")
def beat() -> None:
    heartbeat.beat("worker")
