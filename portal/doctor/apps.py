from django.apps import AppConfig


class DoctorConfig(AppConfig):
    name = "portal.doctor"
    label = "doctor"
