from django.apps import AppConfig


class MeteringConfig(AppConfig):
    name = "quotas.metering"
    label = "metering"
