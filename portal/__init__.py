"""The portal's process: settings, URLs, the Celery application, and code shared by all apps."""

from portal.celery import app as celery_app

__all__ = ["celery_app"]
