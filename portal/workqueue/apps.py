from django.apps import AppConfig


class WorkqueueConfig(AppConfig):
    name = "portal.workqueue"
    label = "workqueue"
