from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "quotas.catalog"
    label = "catalog"
