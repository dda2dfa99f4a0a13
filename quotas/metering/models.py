"""The usage ledger: which slices were held by whom and when. Every cost is computed from it."""

from fractions import Fraction
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from portal.clusters.models import Cluster


class UsageInterval(models.Model):
    """The time `[start, end)` in which a holder held `count` slices of an offering; `end` is null while it does.

    Append-only: a row is written once and gets its `end` once (`services`). Names are copied at the start, so a team
    that is renamed or moved keeps its past.

    `holder_id` is an allocation's id or a queued Job's uid. The kind of the holder is no column, since filling it in
    would rewrite the whole ledger: an interval of a Job is one without `member`.

    `slot` is what is held: a device, or where Kubernetes names none, an allocation's count on a flavor or what one pod
    of a queued Job requests. What a Job has reserved beyond the use of its pods is `unused`, in a slot of the Job for
    each flavor and resource.

    `source_start` and `source_end` name the observation that is the evidence. An `estimated` bound is the last sighting
    before an unobserved change.
    """

    key = models.UUIDField(primary_key=True, editable=False)
    holder_id = models.UUIDField()
    slot = models.CharField(max_length=400)
    start = models.DateTimeField()
    end = models.DateTimeField(null=True, blank=True)
    estimated_start = models.BooleanField(default=False)
    estimated_end = models.BooleanField(default=False)
    gpu_share_numerator = models.PositiveIntegerField()
    gpu_share_denominator = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    unused = models.BooleanField(default=False, help_text="reserved by a queued Job and used by no pod of it")
    offering = models.CharField(max_length=127)
    flavor = models.CharField(max_length=63)
    kind = models.CharField(max_length=6)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    node = models.CharField(max_length=253, blank=True)
    device_uuid = models.CharField(max_length=64, blank=True)
    department = models.CharField(max_length=63)
    team = models.CharField(max_length=63)
    project = models.CharField(max_length=63)
    member = models.CharField(max_length=150)
    namespace = models.CharField(max_length=63)
    source_start = models.JSONField()
    source_end = models.JSONField(null=True, blank=True)
    recorded_at = models.DateTimeField()

    class Meta:
        ordering = ("-start", "key")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(end__isnull=True) | Q(end__gte=F("start")), name="usage_ends_after_start"
            ),
            models.CheckConstraint(
                condition=Q(end__isnull=True, source_end__isnull=True, estimated_end=False)
                | Q(end__isnull=False, source_end__isnull=False),
                name="usage_end_has_evidence",
            ),
            models.CheckConstraint(
                condition=Q(count__gt=0, gpu_share_numerator__gt=0, gpu_share_denominator__gt=0),
                name="usage_quantity_positive",
            ),
            models.UniqueConstraint(fields=("slot",), condition=Q(end__isnull=True), name="usage_one_open_per_slot"),
        ]
        indexes: ClassVar = [
            models.Index(fields=("holder_id",), name="usage_allocation"),
            models.Index(fields=("end", "start"), name="usage_window"),
            models.Index(fields=("team", "start"), name="usage_team_window"),
            models.Index(fields=("slot", "-end"), name="usage_slot_end"),
        ]

    def __str__(self) -> str:
        return f"{self.slot} [{self.start:%F %T}, {self.end or '...'})"

    @property
    def device(self) -> str:
        """Return the name of the held device, without the share of one that serves several; empty if none is
        named.
        """
        return self.slot.split("/")[2] if self.node and self.slot.split("/")[1] == self.node else ""

    @property
    def gpus(self) -> Fraction:
        """Return the whole-GPU equivalents held: the share of one slice times the count."""
        return Fraction(self.gpu_share_numerator, self.gpu_share_denominator) * self.count
