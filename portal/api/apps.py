from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"
    label = "api"

    def ready(self) -> None:
        # drf-spectacular registers extensions when they are imported, and Celery its application
        from portal import celery  # noqa: F401
        from portal.api.http import field_schemas, openapi  # noqa: F401
