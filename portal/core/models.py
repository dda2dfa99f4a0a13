from django.db import models


class Due(models.Model):
    """One target that has to be looked at from `due_at` on, by one worker at a time.

    Written by `portal.core.due` only.
    """

    target = models.CharField(max_length=200, unique=True)
    due_at = models.DateTimeField(db_index=True)
    leased_until = models.DateTimeField(null=True, blank=True, help_text="A worker looks at it, and has it until then.")
    marks = models.PositiveBigIntegerField(default=1, help_text="How often it was marked: tells a mark made meanwhile.")
    attempts = models.PositiveIntegerField(default=0, help_text="Failures in a row.")
    error = models.TextField(blank=True, default="")
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "due"

    def __str__(self) -> str:
        return self.target


class Heartbeat(models.Model):
    """When a process last showed that it does its work. Written by `portal.core.heartbeat` only."""

    name = models.CharField(max_length=100, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
