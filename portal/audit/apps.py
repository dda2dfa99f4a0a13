from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "portal.audit"
    label = "audit"

    def ready(self) -> None:
        from portal.audit import checks  # noqa: F401 (Django registers checks when they are imported)
