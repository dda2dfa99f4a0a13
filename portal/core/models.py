from typing import ClassVar

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


class AppendOnly(models.Model):
    """A table to which the application's database role may add rows, and whose rows it cannot delete.

    It may update `updatable_columns` alone: those that get their value after the row is written. Of a table whose rows
    `may_be_withdrawn` it deletes those by which nothing was computed yet; a trigger keeps the others.
    `portal.audit.grants` grants it these rights and no more.
    """

    updatable_columns: ClassVar[tuple[str, ...]] = ()
    may_be_withdrawn: ClassVar[bool] = False

    class Meta:
        abstract = True


class WorkItem(models.Model):
    """A target that has to be reconciled from `due_at` on, by one worker at a time.

    Written by `portal.workqueue.queue` only.
    """

    target = models.CharField(max_length=200, unique=True)
    due_at = models.DateTimeField(db_index=True)
    leased_until = models.DateTimeField(null=True, blank=True, help_text="Until when a worker has it.")
    marks = models.PositiveBigIntegerField(default=1, help_text="How often it was enqueued.")
    attempts = models.PositiveIntegerField(default=0, help_text="Failures in a row.")
    error = models.TextField(blank=True, default="")
    request_id = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="Of the last request that enqueued it."
    )
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "core_due"
        verbose_name_plural = "work items"

    def __str__(self) -> str:
        return self.target


class Heartbeat(models.Model):
    """When a kind of process last did its work. Written by `portal.core.heartbeat` only."""

    name = models.CharField(max_length=100, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class AuditEntry(AppendOnly):
    """One action of one actor. Written by `portal.audit.entries` only, and never changed or deleted."""

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=150, help_text="Username, or system.")
    action = models.CharField(max_length=60, help_text="What was acted on, and how: limit.set.")
    target = models.CharField(max_length=250)
    team = models.CharField(max_length=40, blank=True, default="", help_text="Slug; empty: the platform's alone.")
    project = models.CharField(max_length=40, blank=True, default="")
    before = models.JSONField(null=True, encoder=DjangoJSONEncoder)
    after = models.JSONField(null=True, encoder=DjangoJSONEncoder)
    source = models.JSONField(default=dict, help_text="As portal.audit.context has it.")
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        verbose_name_plural = "audit entries"
        indexes: ClassVar = [
            models.Index(fields=(name, "-id")) for name in ("actor", "action", "target", "team", "project")
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.actor} {self.action} {self.target}"


class AuditSeal(AppendOnly):
    """The position of one entry in the chain. Written by `portal.audit.chain` only, and never changed or deleted."""

    position = models.PositiveBigIntegerField(primary_key=True, help_text="From 1, without gaps.")
    entry = models.OneToOneField(AuditEntry, on_delete=models.PROTECT, related_name="seal")
    sealed_at = models.DateTimeField(db_index=True)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the digest before and of all that stands here.")

    def __str__(self) -> str:
        return f"{self.position}: {self.digest}"


class Announcement(models.Model):
    """What operators tell everybody, from `starts_at` until before `ends_at`; null: without a bound.

    Written by `portal.tenants.announcements` only.
    """

    class Severity(models.TextChoices):
        INFO = "info"
        WARNING = "warning"

    text = models.CharField(max_length=300)
    severity = models.CharField(max_length=7, choices=Severity, default=Severity.INFO)
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=150, help_text="Username.")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at"))
                | models.Q(starts_at=None)
                | models.Q(ends_at=None),
                name="announcement_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class IdempotentReply(models.Model):
    """The reply to a request that may be repeated. Written by `portal.http.idempotency` only, in the transaction of its
    effect. Its table belongs to the app `api`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    route = models.CharField(max_length=200, help_text="Method and path.")
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    headers = models.JSONField(default=dict, help_text="Those that are sent again, such as Location.")
    asked = models.JSONField(default=list, help_text="Permissions that its effect required: action, team, owner.")
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        app_label = "api"
        verbose_name_plural = "idempotent replies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("user", "route", "key"), name="one_reply_per_person_route_and_key"),
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"
