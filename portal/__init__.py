"""The portal's process: settings, URLs, the Celery application, and what every app stands on."""

from portal.celery import app as celery_app

__all__ = ["celery_app"]
