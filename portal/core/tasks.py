from celery import shared_task
from django.conf import settings

from portal.core import audit_chain, audit_heads, due, heartbeat


@shared_task(name="core.sweep")
def sweep() -> None:
    due.sweep()


@shared_task(name="core.heartbeat")
def beat() -> None:
    heartbeat.beat("worker")


@shared_task(name="core.seal_audit")
def seal_audit() -> None:
    audit_chain.seal()


@shared_task(name="core.export_audit_heads")
def export_audit_heads() -> None:
    audit_chain.seal()
    audit_heads.export(settings.AUDIT_HEADS_FILE)
