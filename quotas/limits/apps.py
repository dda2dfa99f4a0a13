from django.apps import AppConfig


class LimitsConfig(AppConfig):
    name = "quotas.limits"
    label = "limits"
