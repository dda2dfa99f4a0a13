"""What the recorder of the ledger knows of itself: corrections, outages, and how its clock differs from a cluster's."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from portal.clusters.models import Cluster
from portal.core.models import AppendOnly


class Correction(AppendOnly):
    """A later and better bound of an interval that had ended, such as at its last sighting; append-only.

    The interval's `end` is that of its newest correction, written in the same transaction, so every reader has it.
    `former_end` is what was charged until then. `evidence` is the object that says so, of the same uid; of overtime,
    which goes on as an interval of its own, it is when the portal ended the allocation.
    """

    class Cause(models.TextChoices):
        FINISHED = "finished", "the pod says when it finished"
        OVERTIME = "overtime", "the rest was held past its end"

    usage = models.ForeignKey(
        "metering.UsageInterval", on_delete=models.PROTECT, null=True, blank=True, related_name="corrections"
    )
    foreign_use = models.ForeignKey(
        "metering.ForeignUse", on_delete=models.PROTECT, null=True, blank=True, related_name="corrections"
    )
    former_end = models.DateTimeField()
    end = models.DateTimeField()
    cause = models.CharField(max_length=16, choices=Cause)
    evidence = models.JSONField()
    recorded_at = models.DateTimeField()

    class Meta:
        ordering = ("-recorded_at", "-id")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(usage__isnull=False, foreign_use=None) | Q(usage=None, foreign_use__isnull=False),
                name="correction_of_one_interval",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.usage or self.foreign_use}: {self.former_end:%F %T} is {self.end:%F %T}"


class RecorderOutage(AppendOnly):
    """The time `[start, end)` in which nobody recorded changes of a kind of a cluster's objects; append-only.

    Written when the kind is listed again. What ended in it was charged until `start`, the last sighting.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    kind = models.CharField(max_length=40)
    start = models.DateTimeField()
    end = models.DateTimeField()
    recorded_at = models.DateTimeField()

    class Meta:
        ordering = ("-start", "cluster", "kind")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("cluster", "kind", "start"), name="recorder_outage_once"),
            models.CheckConstraint(condition=Q(end__gt=F("start")), name="recorder_outage_ends_after_start"),
        ]
        indexes: ClassVar = [models.Index(fields=("end", "start"), name="recorder_outage_window")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.kind} [{self.start:%F %T}, {self.end:%F %T})"


class ClockSkew(models.Model):
    """By how much a cluster's API server is ahead of the watcher's clock, as last measured; replaced each time."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.PROTECT, primary_key=True, related_name="+", db_column="cluster"
    )
    seconds = models.FloatField(help_text="negative if the API server is behind")
    error = models.FloatField(help_text="seconds by which the measurement may be wrong")
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.seconds:+.3f} s ± {self.error:.3f} s"
