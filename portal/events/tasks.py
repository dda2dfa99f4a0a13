from celery import shared_task

from portal.events import reading


@shared_task(name="events.purge")
def purge() -> None:
    reading.purge()
