from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "portal.tenants"
    label = "tenants"

    def ready(self) -> None:
        from portal.tenants import checks  # noqa: F401 (Django registers checks when they are imported)
