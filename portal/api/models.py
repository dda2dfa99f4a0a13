from typing import ClassVar

from django.conf import settings
from django.db import models


class IdempotentReply(models.Model):
    """The answer to one request with an `Idempotency-Key`, written in the transaction of its effect."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    route = models.CharField(max_length=200, help_text="Method and path.")
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "idempotent replies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("user", "route", "key"), name="one_reply_per_person_route_and_key"),
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"
