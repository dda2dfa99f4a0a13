"""Events: that something happened, for whoever follows it. What happened is in the record that an event refers to."""

from typing import ClassVar

from django.db import models


class CurrentTransaction(models.Func):
    """The number of the transaction, which PostgreSQL never gives again."""

    template = "(pg_current_xact_id()::text::bigint)"
    output_field = models.BigIntegerField()


class Event(models.Model):
    """One thing that happened. Written by `portal.events.writing` in the statement that writes its record.

    Whoever may see it is asked at each read: `scope` says of what kind it is, and `project` and `team` of whom. In the
    order of `transaction` and id no event comes before one that was read (`reading`).
    """

    class Scope(models.TextChoices):
        PROJECT = "project", "whoever sees the project"
        AUDIT = "audit", "whoever may read the audit log of the team; of none, of the platform"

    transaction = models.BigIntegerField(db_default=CurrentTransaction(), editable=False)
    at = models.DateTimeField()
    kind = models.CharField(max_length=60, help_text="What it is about, and what happened: allocation.active.")
    actor = models.CharField(max_length=150, help_text="Username, portal, or system.")
    subject = models.CharField(max_length=250, help_text="The id of an allocation, or the target of an audit entry.")
    project = models.CharField(max_length=40, blank=True, default="", help_text="Slug.")
    team = models.CharField(max_length=40, blank=True, default="", help_text="Slug.")
    cluster = models.CharField(max_length=50, blank=True, default="", help_text="Slug.")
    scope = models.CharField(max_length=7, choices=Scope)
    transition = models.BigIntegerField(null=True, help_text="The entry of an allocation's timeline.")
    audit_entry = models.BigIntegerField(null=True)

    class Meta:
        ordering = ("transaction", "id")
        indexes: ClassVar = [
            models.Index(fields=("transaction", "id"), name="event_order"),
            models.Index(fields=("project", "transaction", "id"), name="event_of_project"),
            models.Index(fields=("at",), name="event_at"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(transition=None) | models.Q(audit_entry=None), name="event_of_one_record"
            )
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.kind} {self.subject}"
