from django.apps import AppConfig


class CostsConfig(AppConfig):
    name = "quotas.costs"
    label = "costs"
