from celery import shared_task
from django.conf import settings

from portal.audit import chain, heads


@shared_task(name="core.seal_audit")
def seal_audit() -> None:
    chain.seal()


@shared_task(name="core.export_audit_heads")
def export_audit_heads() -> None:
    chain.seal()
    heads.export(settings.AUDIT_HEADS_FILE)
