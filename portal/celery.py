"""The Celery application.

Messages are hints: losing or repeating any of them changes nothing (see `portal.core.due`).
"""

import os

from celery import Celery
from celery.signals import task_prerun
from django.db import close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_prerun.connect
def drop_broken_connections(**_: object) -> None:
    """As Django does before each request: connections are kept between tasks, a broken one is not."""
    close_old_connections()
