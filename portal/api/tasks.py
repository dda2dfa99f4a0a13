from celery import shared_task

from portal.http import idempotency


@shared_task(name="api.purge_replies")
def purge_replies() -> None:
    idempotency.purge()
