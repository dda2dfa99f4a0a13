from celery import shared_task

from allocations.reconcile.work import reconcile as reconcile_target


@shared_task(name="allocations.reconcile")
def reconcile(target: str) -> None:
    reconcile_target(target)
