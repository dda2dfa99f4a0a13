"""The ledger: which slices were held by whom and when, and which GPUs there were. Every cost is computed from it."""

from fractions import Fraction
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from portal.clusters.models import Cluster
from quotas.metering import units
from quotas.metering.intervals import RevisedInterval, SourcedInterval
from quotas.metering.recorder_models import ClockSkew as ClockSkew
from quotas.metering.recorder_models import Correction as Correction
from quotas.metering.recorder_models import RecorderOutage as RecorderOutage
from quotas.metering.rollup_models import AccountHour as AccountHour
from quotas.metering.rollup_models import DayTotal as DayTotal
from quotas.metering.rollup_models import DirtyHour as DirtyHour
from quotas.metering.rollup_models import HourTotal as HourTotal
from quotas.metering.rollup_models import MonthTotal as MonthTotal
from quotas.metering.rollup_models import OwnedIdleDay as OwnedIdleDay
from quotas.metering.rollup_models import OwnedIdleHour as OwnedIdleHour
from quotas.metering.rollup_models import OwnedIdleMonth as OwnedIdleMonth
from quotas.metering.rollup_models import RolledUpHour as RolledUpHour
from quotas.metering.units import FoundUnit, Unit, Value


class UsageInterval(SourcedInterval):
    """The time `[start, end)` in which a holder held `count` slices of an offering; `services` write it. Names are
    copied at the start, so a team that is renamed or moved keeps its past.

    `holder_id` is an allocation's id or a queued Job's uid. The kind of the holder is no column, since filling it in
    would rewrite the whole ledger: an interval of a Job is one without `member`.

    `slot` is what is held: a device, or where Kubernetes names none, an allocation's count on a flavor or what one pod
    of a queued Job requests. What a Job has reserved beyond the use of its pods is `unused`, in a slot of the Job for
    each flavor and resource.

    The `gpu_share` is what one slice takes of a GPU. What is charged of it follows from the other uses of the GPU
    (`gpu_shares`).
    """

    key = models.UUIDField(primary_key=True, editable=False)
    holder_id = models.UUIDField()
    slot = models.CharField(max_length=400)
    gpu_share_numerator = models.PositiveIntegerField()
    gpu_share_denominator = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    unused = models.BooleanField(default=False, help_text="reserved by a queued Job and used by no pod of it")
    overtime = models.BooleanField(default=False, help_text="held past its end, since the portal ended it late")
    uncharged = models.BooleanField(default=False, help_text="has no cost, since the operator charges no overtime")
    offering = models.CharField(max_length=127)
    flavor = models.CharField(max_length=63)
    kind = models.CharField(max_length=6)
    node = models.CharField(max_length=253, blank=True)
    device_uuid = models.CharField(max_length=64, blank=True)
    department = models.CharField(max_length=63)
    team = models.CharField(max_length=63)
    project = models.CharField(max_length=63)
    member = models.CharField(max_length=150)
    namespace = models.CharField(max_length=63)
    labels = models.JSONField(default=dict, db_default={}, help_text="of the request, or of the Job's pods")

    class Meta(SourcedInterval.Meta):
        ordering = ("-start", "key")
        constraints: ClassVar = [
            *SourcedInterval.Meta.constraints,
            models.CheckConstraint(
                condition=Q(count__gt=0, gpu_share_numerator__gt=0, gpu_share_denominator__gt=0),
                name="usage_quantity_positive",
            ),
            models.CheckConstraint(condition=Q(uncharged=False) | Q(overtime=True), name="usage_overtime_uncharged"),
            models.UniqueConstraint(fields=("slot",), condition=Q(end__isnull=True), name="usage_one_open_per_slot"),
        ]
        indexes: ClassVar = [
            models.Index(fields=("holder_id",), name="usage_allocation"),
            models.Index(fields=("end", "start"), name="usage_window"),
            models.Index(fields=("team", "start"), name="usage_team_window"),
            models.Index(fields=("slot", "-end"), name="usage_slot_end"),
            models.Index(fields=("node", "end"), condition=~Q(node=""), name="usage_node_end"),
            models.Index(fields=("cluster", "start"), name="usage_cluster_start"),
        ]

    def __str__(self) -> str:
        return f"{self.slot} [{self.start:%F %T}, {self.end or '...'})"

    @property
    def device(self) -> str:
        """Return the name of the held device, without the share of one that serves several; empty if none is
        named.
        """
        return device_of_slot(self.slot, self.node)

    @property
    def gpus(self) -> Fraction:
        """Return the whole-GPU equivalents that are taken: the share of one slice times the count."""
        return Fraction(self.gpu_share_numerator, self.gpu_share_denominator) * self.count


def device_of_slot(slot: str, node: str) -> str:
    """Return the name of the device in a slot on the node, without the share of one that serves several; empty if the
    slot names none.
    """
    parts = slot.split("/")
    return parts[2] if node and parts[1] == node else ""


class CapacityInterval(SourcedInterval):
    """The time `[start, end)` in which a node had `count` units, of which `available` could be used.

    A unit is a physical GPU that DRA names (`kind` gpu, one unit a row), or one of a resource of the device plugin.
    MIG devices of a GPU belong to it and have no row.

    `state` says why units are not available. The catalogue adds, once it knows them, the flavor, the GPUs that one unit
    is, and whether the flavor is offered; until then they are empty. What changes them begins a new interval.

    An `inferred` interval copies the next one, since a use shows that the unit was there (`inferred_capacity`).
    """

    class Kind(models.TextChoices):
        GPU = units.GPU, "GPU named by DRA"
        RESOURCE = units.RESOURCE, "resource of the device plugin"

    updatable_columns = (
        *SourcedInterval.updatable_columns,
        *("flavor", "gpus_numerator", "gpus_denominator", "offered"),
    )

    node = models.CharField(max_length=253)
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=127, help_text="of the device in its pool, or of the resource")
    uuid = models.CharField(max_length=64, blank=True)
    inferred = models.BooleanField(default=False)
    count = models.PositiveIntegerField()
    available = models.PositiveIntegerField()
    state = models.CharField(max_length=16, blank=True)
    labels = models.JSONField(default=dict, help_text="the labels or attributes that decide flavor and value")
    flavor = models.CharField(max_length=63, blank=True)
    gpus_numerator = models.PositiveIntegerField(null=True, blank=True)
    gpus_denominator = models.PositiveIntegerField(null=True, blank=True)
    offered = models.BooleanField(null=True, blank=True)

    class Meta(SourcedInterval.Meta):
        ordering = ("-start", "cluster", "node", "name")
        constraints: ClassVar = [
            *SourcedInterval.Meta.constraints,
            models.CheckConstraint(condition=Q(available__lte=F("count")), name="capacity_available_at_most_all"),
            models.CheckConstraint(
                condition=Q(flavor="", gpus_numerator=None, gpus_denominator=None, offered=None)
                | Q(gpus_numerator__isnull=False, gpus_denominator__gt=0, offered__isnull=False),
                name="capacity_valued_whole",
            ),
            models.UniqueConstraint(
                fields=("cluster", "node", "kind", "name"),
                condition=Q(end__isnull=True),
                name="capacity_one_open_per_unit",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=("end", "start"), name="capacity_window"),
            models.Index(fields=("cluster",), condition=Q(offered=None), name="capacity_without_value"),
            models.Index(fields=("cluster", "node", "kind", "name", "-end"), name="capacity_unit_end"),
            models.Index(fields=("cluster", "start"), name="capacity_cluster_start"),
        ]

    def __str__(self) -> str:
        return f"{self.node}/{self.name} [{self.start:%F %T}, {self.end or '...'})"

    @property
    def unit(self) -> Unit:
        return Unit(self.node, self.kind, self.name)

    @property
    def found(self) -> FoundUnit:
        return FoundUnit(self.count, self.available, self.state, self.uuid, self.labels)

    @property
    def value(self) -> Value | None:
        """Return what the catalogue has added; None until it has."""
        if self.gpus_numerator is None or self.gpus_denominator is None:
            return None
        return Value(self.flavor, Fraction(self.gpus_numerator, self.gpus_denominator), bool(self.offered))

    @property
    def final_value(self) -> Value | None:
        """Return the value; of what ended without one, such as a node that left before the catalogue knew it, a GPU for
        each unit, not offered.
        """
        return self.value or (Value("", Fraction(1), offered=False) if self.end else None)


class ForeignUse(RevisedInterval):
    """The time `[start, end)` in which a pod or claim without an allocation used `count` units of a node's GPUs.

    `slot` is that of the usage interval by which a queued Job is charged for the same use, if there is one; what none
    covers is unmanaged.
    """

    slot = models.CharField(max_length=450)
    node = models.CharField(max_length=253)
    kind = models.CharField(max_length=8, choices=CapacityInterval.Kind)
    name = models.CharField(max_length=127, help_text="of the device in its pool, or of the resource")
    count = models.PositiveBigIntegerField(help_text="units of a resource, shares of a device that several claims use")
    consumer_kind = models.CharField(max_length=40, help_text="Pod or ResourceClaim")
    consumer = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    owner_kind = models.CharField(max_length=63, blank=True, help_text="kind of the controller, e.g. DaemonSet")

    class Meta(RevisedInterval.Meta):
        ordering = ("-start", "slot")
        constraints: ClassVar = [
            *RevisedInterval.Meta.constraints,
            models.UniqueConstraint(
                fields=("slot", "uid"), condition=Q(end__isnull=True), name="foreign_use_one_open_per_slot"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=("end", "start"), name="foreign_use_window"),
            models.Index(fields=("uid",), name="foreign_use_uid"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.consumer}: {self.slot} [{self.start:%F %T}, {self.end or '...'})"


class HoldUse(RevisedInterval):
    """The time `[start, end)` in which an allocation had a pod on a node that had not finished. An empty interval says
    since when it is recorded: of a hold that began before, and of a cluster, there with no hold (`hold_use.NO_HOLD`).

    It is no part of what is charged: a hold is charged with and without pods.
    """

    holder_id = models.UUIDField()

    class Meta(RevisedInterval.Meta):
        ordering = ("-start", "holder_id")
        constraints: ClassVar = [
            *RevisedInterval.Meta.constraints,
            models.UniqueConstraint(
                fields=("holder_id",), condition=Q(end__isnull=True), name="hold_use_one_open_per_holder"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=("holder_id", "-end"), name="hold_use_holder_end"),
            models.Index(fields=("cluster", "start"), name="hold_use_cluster_start"),
        ]

    def __str__(self) -> str:
        return f"{self.holder_id} [{self.start:%F %T}, {self.end or '...'})"


class BalanceProof(models.Model):
    """The result of checking that the ledger of a cluster adds up in one hour; replaced when the hour is checked again.

    ``hour`` is its start. Amounts are GPU-hours, rounded so that the parts of a balanced hour add up to the capacity.
    ``failures`` are the failing rows (``quotas.metering.balance.Failure``), at most MAX_FAILURES of the
    ``failure_count`` that there are.
    """

    MAX_FAILURES = 100

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    hour = models.DateTimeField()
    checked_at = models.DateTimeField()
    balanced = models.BooleanField()
    accounts = models.PositiveIntegerField()
    capacity_gpu_hours = models.DecimalField(max_digits=32, decimal_places=6)
    held = models.DecimalField(max_digits=32, decimal_places=6)
    unmanaged = models.DecimalField(max_digits=32, decimal_places=6)
    unavailable = models.DecimalField(max_digits=32, decimal_places=6)
    stranded = models.DecimalField(max_digits=32, decimal_places=6)
    idle = models.DecimalField(max_digits=32, decimal_places=6)
    variance = models.DecimalField(max_digits=32, decimal_places=6)
    failures = models.JSONField(default=list)
    failure_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-hour", "cluster")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("cluster", "hour"), name="balance_proof_once"),
            models.CheckConstraint(
                condition=Q(balanced=True, failure_count=0) | Q(balanced=False, failure_count__gt=0),
                name="balance_proof_fails_by_rows",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=("-hour", "cluster"), name="balance_proof_newest"),
            models.Index(fields=("cluster", "-hour"), condition=Q(balanced=False), name="balance_proof_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%F %H:%M}: {'balanced' if self.balanced else 'not balanced'}"
