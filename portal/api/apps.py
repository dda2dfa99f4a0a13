from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"
    label = "api"

    def ready(self) -> None:
        from portal.api.http import openapi  # noqa: F401 (drf-spectacular registers extensions when they are imported)
